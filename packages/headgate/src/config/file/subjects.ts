/** Who callers are, as far as the file says it: their types, addresses and networks, and how they are shown. */

import { MASKS, type Mask, type Masks } from '../../policy/config.js'
import { MAX_PROXIES, type TrustedProxies } from '../../subject/client-address.js'
import { parseNetwork } from '../../subject/network.js'
import { foldType, type Ipv6Networks } from '../../subject/subject.js'
import { describeValue } from '../describe-value.js'
import { listOf } from '../shape/lists.js'
import { forms, type Keys, mapOf, record } from '../shape/maps.js'
import { choice, NAME, text, wholeNumber } from '../shape/scalars.js'
import { mapped, parsed, type Shape } from '../shape/shape.js'

/** Shows no text that is no type: it may be a whole subject whose id is a secret. */
function hidden(value: unknown): string {
  return typeof value === 'string' ? `a string of ${value.length} characters` : describeValue(value)
}

/** Reads a subject type. */
export const subjectType: Shape<string> = {
  ...text('a subject type, such as ip, user or apikey', NAME),
  read(value, place) {
    if (typeof value === 'string' && NAME.test(value)) return value
    return place.reject({ expected: subjectType.words, got: hidden(value) })
  },
}

const SUBJECT = /^[^:]+:[\s\S]+$/

/** Validates the keys of `subjects`, which are `type:id`. */
export const subjectKeys: Keys = {
  schema: { pattern: SUBJECT.source },
  objectionTo: key => (SUBJECT.test(key) ? null : { expected: 'type:id, such as user:42', got: hidden(key) }),
}

const OTHERS = '*'
const masksByType = mapOf('a map of subject types', {
  keys: {
    schema: { anyOf: [{ enum: [OTHERS] }, { pattern: NAME.source }] },
    objectionTo: key =>
      key === OTHERS || NAME.test(key)
        ? null
        : { expected: 'a subject type, or * for all others', got: hidden(key) },
  },
  values: choice(MASKS),
})

/** Reads how subjects are shown to operators: one word for all, or one per subject type. */
export const masks = mapped(
  forms('`part`, `whole` or `hidden`, or a map such as `{ user: hidden, "*": part }`', {
    words: MASKS,
    map: masksByType,
  }),
  (read): Masks => {
    if (typeof read === 'string') return { byType: {}, others: read }
    const types = [...read].filter(([type]) => type !== OTHERS)
    return {
      byType: Object.fromEntries(types.map(([type, word]): [string, Mask] => [foldType(type), word])),
      others: read.get(OTHERS) ?? 'part',
    }
  },
)

const SIZE = /^\/(4[89]|5\d|6[0-3])$/
const networkSizes = mapOf('a map of networks', {
  keys: {
    schema: { pattern: SIZE.source },
    objectionTo: key =>
      SIZE.test(key) ? null : { expected: 'a size from /48 to /63', got: describeValue(key) },
  },
  values: wholeNumber(1, 65_536),
})

/** Reads the budgets of the networks around an IPv6 caller's /64. */
export const ipv6Networks = mapped(
  forms('`off`, or a map such as `{ /56: 4, /48: 16 }`', { words: ['off'], map: networkSizes }),
  (read): Ipv6Networks => (read === 'off' ? read : Object.fromEntries(read)),
)

const network = parsed<string>(
  'an address or a network',
  { type: 'string', pattern: '^[0-9a-fA-F:.]+(/\\d{1,3})?$' },
  value => {
    parseNetwork(value)
    return String(value)
  },
)
const NETWORKS = 'a list of addresses and networks'

/** Reads the peers whose word about the caller is taken. */
export const trustedPeers = forms(`${NETWORKS}, or everybody`, {
  list: listOf(`${NETWORKS}, or everybody`, network, { atLeast: 1 }),
  words: ['everybody'],
})

/**
 * Reads the proxies whose word about a client's address is taken. Trusting strangers takes a word of its own, never
 * a number or `true`.
 */
export const trustedProxies: Shape<TrustedProxies> = forms(`${NETWORKS}, \`everybody\`, or \`{ hops }\``, {
  list: listOf(NETWORKS, network),
  words: ['everybody'],
  map: record({
    hops: {
      shape: wholeNumber(1, MAX_PROXIES),
      text: 'How many proxies every request passes.',
      required: true,
    },
  }),
})
