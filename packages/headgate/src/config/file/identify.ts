import { nearestName } from '../../errors/nearest-name.js'
import { type JwtSourceConfig, perAddressOf, type SourceConfig } from '../../subject/source-config.js'
import { describeValue } from '../describe-value.js'
import { listOf, oneOrMore } from '../shape/lists.js'
import { type Fields, isMapLike, readMap, record } from '../shape/maps.js'
import { choice, NAME, nameOf, text, wholeNumber } from '../shape/scalars.js'
import {
  type JsonSchema,
  type Place,
  type ReadAs,
  type Shape,
  scalar,
  type WrittenAs,
} from '../shape/shape.js'
import { trustedPeers } from './subjects.js'

const header = text('the name of a header', /^[\w!#$%&'*+.^`|~-]{1,64}$/)
const cookie = text('the name of a cookie', /^[\w!#$%&'*+.^`|~-]{1,64}$/)
const path = text('the path of a file', /^\S[\s\S]*$/)
const claim = text('the name of a claim', /^\S{1,128}$/)
const someText = text('a text', /^\S[\s\S]{0,511}$/)
const aloud = scalar<true>('true', { enum: [true] }, value => value === true)
const times = wholeNumber(1, 65_536)
const perAddressTimes: Shape<number | 'off'> = {
  words: '`off`, or a whole number',
  schema: { anyOf: [{ enum: ['off'] }, times.schema] },
  read: (value, place) => (value === 'off' ? value : times.read(value, place)),
}
const ALGORITHMS = [
  ...(['HS256', 'HS384', 'HS512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const),
  ...(['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const),
]

const perAddress = {
  shape: perAddressTimes,
  text: 'How many times the limits of one such caller all of them from one address have together, because anybody can make one up. `off` says that you verify them elsewhere.',
  leftOut: '10',
}
const tier = { shape: nameOf('tiers'), text: 'The tier of callers it finds.' }
const trustedHeader = {
  header: { shape: header, text: 'The header that names the caller.', required: true },
  from: {
    shape: trustedPeers,
    text: 'Trusted peers: addresses and networks the connection must come from, or `everybody`.',
    required: true,
  },
  tier,
  perAddress: { ...perAddress, text: `For \`from: everybody\`: ${lowerFirst(perAddress.text)}` },
} satisfies Fields

/** The settings of each source. */
export const sourceFields = {
  internal: record(trustedHeader),
  apikey: record({
    header: { shape: header, text: 'The header with the key.', leftOut: 'x-api-key' },
    scheme: {
      shape: text('a word', /^[A-Za-z-]{1,32}$/),
      text: 'The word before the key, such as `Bearer`.',
    },
    unverified: {
      shape: aloud,
      text: 'Accepts every value as a caller, charged to its address, too.',
      leftOut: 'only keys named in `subjects` are callers',
    },
    tier,
    perAddress: { ...perAddress, text: `With \`unverified\`: ${lowerFirst(perAddress.text)}` },
  }),
  jwt: record({
    jwks: {
      shape: path,
      text: 'The path of a JSON Web Key Set with the public keys. Give either this or `secretFile`.',
    },
    secretFile: { shape: path, text: 'The path of a file with the secret, of at least 32 characters.' },
    algorithms: {
      shape: oneOrMore(choice(ALGORITHMS)),
      text: 'The accepted algorithms: HS… with a secret, the others with public keys.',
      required: true,
    },
    issuer: { shape: someText, text: 'The issuer the token must have.', required: true },
    audience: { shape: someText, text: 'The audience it must be for.', required: true },
    header: {
      shape: header,
      text: 'The header with the token, after `Bearer` or alone.',
      leftOut: 'authorization',
    },
    cookie: { shape: cookie, text: 'Instead: the cookie with the token.' },
    claim: { shape: claim, text: 'The claim that identifies the caller.', leftOut: 'sub' },
    type: { shape: text('a subject type', NAME), text: 'The type of that subject.', leftOut: 'user' },
    tenantClaim: {
      shape: claim,
      text: 'The claim with the organisation, a further subject of type `tenant`.',
    },
    tierClaim: { shape: claim, text: 'The claim with the tier.' },
    clockToleranceSeconds: {
      shape: wholeNumber(0, 300),
      text: 'The allowed skew of the issuer’s clock.',
      leftOut: '0',
    },
  }),
  user: record(trustedHeader),
  session: record({
    cookie: { shape: cookie, text: 'The cookie with the id.', required: true },
    unverified: {
      shape: aloud,
      text: 'Required, because clients can make up ids; they are charged to the address, too. In code, use `lookUp` instead.',
      required: true,
    },
    tier,
    perAddress,
  }),
  tenant: record(trustedHeader),
  fingerprint: record({
    headers: {
      shape: listOf('a list of headers', header, { atLeast: 1 }),
      text: 'Headers that stay the same for one client.',
      leftOut: '[user-agent, accept-language]',
    },
    perAddress,
  }),
  ip: record({ tier }),
} as const

type SourceName = keyof typeof sourceFields
const NAMES = Object.keys(sourceFields) as SourceName[]
/** The sources that need no settings and may be given by name alone. */
export const bareSources: readonly SourceName[] = NAMES.filter(name => schemaOf(name).required === undefined)

type WrittenSettings = { readonly [Name in SourceName]: WrittenAs<(typeof sourceFields)[Name]> }
/** Its name, if it needs no settings, or a map of its name to its settings. */
type WrittenSource = {
  [Name in SourceName]:
    | (Record<never, never> extends WrittenSettings[Name] ? Name : never)
    | Pick<WrittenSettings, Name>
}[SourceName]

const source: Shape<SourceConfig, WrittenSource> = {
  words: 'the name of a source, or a map of one',
  schema: {
    anyOf: [
      { enum: bareSources },
      {
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        maxProperties: 1,
        properties: Object.fromEntries(NAMES.map(name => [name, schemaOf(name)])),
      },
    ],
  },
  read(value, place) {
    if (isName(value)) return readSource(value, null, place.below(value))
    if (!isMapLike(value)) return rejectName(value, place)
    const [[name, given] = ['', null], ...more] = readMap(value, place) ?? []
    if (more.length > 0) return place.reject({ expected: 'one source', got: `${more.length + 1} of them` })
    return isName(name) ? readSource(name, given, place.below(name)) : rejectName(name, place)
  },
}

function isName(value: unknown): value is SourceName {
  return NAMES.includes(value as SourceName)
}

function schemaOf(name: SourceName): JsonSchema {
  return sourceFields[name].schema
}

function rejectName(value: unknown, place: Place): undefined {
  return place.reject({
    expected: `one of ${NAMES.join(', ')}`,
    got: describeValue(value),
    suggestion: nearestName(value, NAMES),
  })
}

function readSource(name: SourceName, given: unknown, place: Place): SourceConfig | undefined {
  const read = sourceFields[name].read(given ?? new Map(), place)
  if (read === undefined) return undefined
  if (name === 'jwt') return toJwt(read as ReadAs<typeof sourceFields.jwt>, place)
  const config = { source: name, ...read } as SourceConfig
  if ('perAddress' in config && perAddressOf(config) === null) {
    const expected = `${name === 'apikey' ? 'unverified: true' : 'from: everybody'} beside it`
    return place.below('perAddress').reject({ expected, got: 'a source whose ids are verified' }, 'key')
  }
  return config
}

function toJwt(read: ReadAs<typeof sourceFields.jwt>, place: Place): JwtSourceConfig | undefined {
  const { jwks, secretFile, algorithms } = read
  if ((jwks === undefined) === (secretFile === undefined)) {
    const got = jwks === undefined ? 'neither' : 'both'
    return place.reject({ expected: 'either jwks or secretFile', got })
  }
  const isSecret = secretFile !== undefined
  const other = algorithms.find(one => one.startsWith('HS') !== isSecret)
  if (other === undefined) return { ...read, source: 'jwt' }
  const expected = isSecret ? 'those of a secret (HS256, HS384, HS512)' : 'those of public keys, without HS'
  return place.below('algorithms').reject({ expected, got: describeValue(other) })
}

/** Reads `identify`: the sources, in order. */
export const identify = listOf('a list of sources', source, { atLeast: 1 })

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}
