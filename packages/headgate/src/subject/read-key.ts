/** Finds and reads the keys that key.ts writes. */
import { encodeTenant, type KeyedState, redisKey, STATE_VERSION } from './key.js'

export interface KeySpace {
  readonly prefix: string
  /** Empty for none. */
  readonly tenant: string
}

/** Returns the pattern of `SCAN` that finds the states of a limit, `<policy>.<limit id>`. It may find others, too. */
export function keyPattern({ prefix, tenant }: KeySpace, name: string): string {
  const start = `${prefix}:${STATE_VERSION}:{${tenant === '' ? '' : `${encodeTenant(tenant)}/`}`
  return `${start.replace(/[*?[\]^\\]/g, '\\$&')}*}*:${name}`
}

const KEY = /\{([^{}]*)\}([^{}]*):([^:{}]*):([^:{}]*)$/
const ENCODED = /%u(d[89a-f][0-9a-f]{2}|[89][0-9a-f])|%([0-9a-f]{2})/g

/** Returns the state of a key; null if it is of another tenant, is no state, or holds but the digest of a long name. */
export function readKey(space: KeySpace, key: string): KeyedState | null {
  const [, tag, within, scope, name] = KEY.exec(key) ?? []
  if (tag === undefined || within === undefined || scope === undefined || name === undefined) return null
  const slot = tag.slice(space.tenant === '' ? 0 : encodeTenant(space.tenant).length + 1)
  const subject = within === '' ? decoded(slot) : `${slot.slice(0, slot.indexOf(':'))}:${within}`
  const state = { subject, scope: decoded(scope), name }
  return redisKey({ ...space, ...state }) === key ? state : null
}

function decoded(part: string): string {
  return part.replace(ENCODED, (_, wide?: string, narrow?: string) =>
    String.fromCharCode(Number.parseInt(wide ?? narrow ?? '', 16)),
  )
}
