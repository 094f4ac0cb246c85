/**
 * `<prefix>:v2:{<tenant>/<type>:<id>}:<scope>:<policy>.<limit>`
 *
 * The braces are Redis Cluster's hash tag: only the text between them chooses the slot, so all limits of a subject live
 * together and one script can charge them. The keys of an IPv6 caller use the tag of its /48, and its own network
 * follows the braces: `{ip:2001:db8:1::/48}2001:db8:1:2::/64:global:api.log-1m`. Every character that could end a part
 * early is percent-encoded, so different parts always give different keys and no user data can choose a slot. Long parts
 * are replaced by a digest.
 */
import { digest } from './digest.js'
import { slotSubject } from './subject.js'

/** Bumped when the layout of the stored state changes, which restarts all limits once. */
export const STATE_VERSION = 'v2'
const MAX_PART_LENGTH = 96
const PLAIN = /^[A-Za-z0-9_.-]*$/
const PLAIN_SUBJECT = /^[A-Za-z0-9_.-]*:[A-Za-z0-9_.-]*$/
const DIGEST_KEY = 'headgate.key'

/** The state that a key is of. */
export interface KeyedState {
  /** `type:id`. */
  readonly subject: string
  readonly scope: string
  /** `<policy>.<limit id>`: contains no character that needs encoding. */
  readonly name: string
}

export interface KeyParts extends KeyedState {
  readonly prefix: string
  /** Left out of the key when empty. */
  readonly tenant: string
}

/** Returns the Redis key of a state. Injective: two keys are equal only if all their parts are. */
export function redisKey(parts: KeyParts): string {
  return createKeyWriter(parts.prefix, parts.tenant)(parts)
}

/** Creates the function that writes the keys of one prefix and tenant. */
export function createKeyWriter(prefix: string, tenant: string): (state: KeyedState) => string {
  const start = `${prefix}:${STATE_VERSION}:{${tenant === '' ? '' : `${encodeTenant(tenant)}/`}`
  // Most keys end like the last one. The runtime joins the pieces of a key only when it is written to the socket, and
  // joining ten of them would take longer than writing them.
  let scope = ''
  let name = ''
  let end = ''
  return state => {
    if (state.scope !== scope || state.name !== name) {
      scope = state.scope
      name = state.name
      end = `:${encodePart(scope, /[%{}:\p{Cc}\p{Cs}]/gu)}:${name}`
    }
    const { subject } = state
    const slot = slotSubject(subject)
    // Only an IPv6 network puts anything but a colon after the braces.
    const within = slot === subject ? '' : subject.slice(slot.indexOf(':') + 1)
    return `${start}${encodeSubject(slot)}}${within}${end}`
  }
}

function encodeSubject(subject: string): string {
  if (subject.length <= MAX_PART_LENGTH && PLAIN_SUBJECT.test(subject)) return subject
  const colon = subject.indexOf(':')
  const type = encodePart(subject.slice(0, colon), /[%{}:/~\p{Cc}\p{Cs}]/gu)
  // Colons stay in an id, to keep IPv6 addresses readable; this is unambiguous because the type has none.
  const id = encodePart(subject.slice(colon + 1), /[%{}\p{Cc}\p{Cs}]/gu)
  return `${type}:${id}`
}

/** Encodes a tenant for use in a key. */
export function encodeTenant(tenant: string): string {
  return encodePart(tenant, /[%{}:/~\p{Cc}\p{Cs}]/gu)
}

function encodePart(part: string, unsafe: RegExp): string {
  // Nearly all parts consist of letters, digits and a few marks, and need no encoding.
  if (part.length <= MAX_PART_LENGTH && PLAIN.test(part)) return part
  const encoded = part.replace(unsafe, percentEncode)
  if (encoded.length <= MAX_PART_LENGTH) return encoded
  // The encoding never produces '%~', so a digest cannot equal an encoded part.
  return `%~${digest(DIGEST_KEY, part)}`
}

function percentEncode(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x80 ? `%${code.toString(16).padStart(2, '0')}` : `%u${code.toString(16)}`
}
