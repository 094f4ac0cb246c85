import type { CorsConfig } from '../../policy/config.js'
import { describeValue } from '../describe-value.js'
import { listOf, sound } from '../shape/lists.js'
import { record } from '../shape/maps.js'
import { text } from '../shape/scalars.js'
import { type Shape, scalar } from '../shape/shape.js'

const ANY_ORIGIN = '*'
const ORIGIN_WORDS = 'an origin such as https://app.example.com, or *'

/** An origin as a browser sends it: lower case, without path, and without the default port. */
const origin: Shape<string> = {
  words: ORIGIN_WORDS,
  schema: { type: 'string', pattern: '^(\\*|[a-z][a-z0-9+.-]*://[^/?#@\\s]+)$' },
  read(value, place) {
    if (value === ANY_ORIGIN || isOrigin(value)) return value
    return place.reject({ expected: ORIGIN_WORDS, got: describeValue(value) })
  },
}

export const corsFields = record({
  origins: {
    shape: listOf('a list of origins', origin, { atLeast: 1 }),
    text: 'Origins whose pages may read the gateway’s own responses, exactly as browsers send them; `*` is all of them. Their preflights are answered here: every method and header, no charge.',
    required: true,
  },
  exposedHeaders: {
    shape: listOf('a list of headers', text('the name of a header', /^[A-Za-z0-9-]{1,64}$/)),
    text: 'Headers of these responses that the pages may read.',
    leftOut: 'all of them',
  },
  credentials: {
    shape: scalar<boolean>('true or false', { type: 'boolean' }, value => typeof value === 'boolean'),
    text: 'Whether pages may ask with cookies. Not with the origin `*`.',
    leftOut: 'false',
  },
})

/** Reads which pages of other origins may read the gateway's own responses. */
export const cors: Shape<CorsConfig> = {
  words: corsFields.words,
  schema: corsFields.schema,
  read(value, place) {
    const read = corsFields.read(value, place)
    if (read?.origins === undefined) return undefined
    const origins = sound(read.origins)
    const { credentials = false, exposedHeaders } = read
    if (credentials && origins.includes(ANY_ORIGIN)) {
      return place
        .below('credentials')
        .reject({ expected: 'false beside the origin *, or a list of origins', got: 'true' })
    }
    return {
      origins,
      credentials,
      exposedHeaders: exposedHeaders === undefined ? null : sound(exposedHeaders),
    }
  },
}

function isOrigin(value: unknown): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, host, origin: own } = new URL(value)
  // Schemes that are not of the web (`app://`) have no origin of their own there.
  return own === value || (own === 'null' && host !== '' && `${protocol}//${host}` === value)
}
