import { MAX_PROXIES, type TrustedProxies } from '../../subject/client-address.js'
import { parseNetwork } from '../../subject/network.js'
import { describeValue } from '../describe-value.js'
import { listOf, sound } from '../shape/lists.js'
import { isMapLike, record } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { wholeNumber } from '../shape/scalars.js'
import type { Shape } from '../shape/shape.js'

const network: Shape<string> = {
  words: 'an address or a network',
  schema: { type: 'string', pattern: '^[0-9a-fA-F:.]+(/\\d{1,3})?$' },
  read(value, place) {
    const objection = objectionTo(() => parseNetwork(value))
    return objection === null ? String(value) : place.reject(objection)
  },
}
const networks = listOf('a list of addresses and networks', network)
const byNumber = record({
  hops: {
    shape: wholeNumber(1, MAX_PROXIES),
    text: 'How many proxies every request passes.',
    required: true,
  },
})

/** Reads the peers whose word about the caller is taken. */
export const believedPeers: Shape<readonly string[] | 'everybody'> = {
  words: 'a list of addresses and networks, or everybody',
  schema: { anyOf: [{ ...networks.schema, minItems: 1 }, { enum: ['everybody'] }] },
  read(value, place) {
    if (value === 'everybody') return value
    if (Array.isArray(value) && value.length > 0) return sound(networks.read(value, place))
    return place.reject({ expected: believedPeers.words, got: describeValue(value) })
  },
}

/**
 * Reads the proxies whose word about a client's address is taken. Trusting strangers takes a word of its own, never
 * a number or `true`.
 */
export const trustedProxies: Shape<TrustedProxies> = {
  words: 'a list of addresses and networks, `everybody`, or `{ hops }`',
  schema: { anyOf: [networks.schema, { enum: ['everybody'] }, byNumber.schema] },
  read(value, place) {
    if (value === 'everybody') return value
    if (isMapLike(value)) {
      const hops = byNumber.read(value, place)?.hops
      return hops === undefined ? undefined : { hops }
    }
    if (Array.isArray(value)) return sound(networks.read(value, place))
    return place.reject({
      expected: 'a list of addresses and networks, everybody, or { hops }',
      got: describeValue(value),
    })
  },
}
