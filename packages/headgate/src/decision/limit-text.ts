/**
 * Caches the text that all responses about a limit share: a response carries up to nine headers, and formatting
 * those that never change took longer than the decision.
 */
import type { Quota } from '../algorithms/algorithm.js'
import { windowSeconds } from './advertised.js'
import { type LimitVerdict, policyOf } from './decision.js'
import { fieldInteger, fieldString, printable } from './header-field.js'

export interface LimitText {
  readonly policy: string
  readonly limit: string
  readonly window: string
  readonly burst: string | null
  /** The limit's name as a String of RFC 9651. */
  readonly name: string
  /** The limit as a policy of the IETF draft. */
  readonly item: string
}

/** By quota, because overrides make new ones, and by name, because several policies may share one. */
const written = new WeakMap<Quota, Map<string, LimitText>>()

export function textOf({ name, quota }: LimitVerdict): LimitText {
  let texts = written.get(quota)
  if (texts === undefined) {
    texts = new Map()
    written.set(quota, texts)
  }
  let text = texts.get(name)
  if (text === undefined) {
    text = write(name, quota)
    texts.set(name, text)
  }
  return text
}

function write(name: string, quota: Quota): LimitText {
  const window = windowSeconds(quota)
  const span = quota.unit === undefined ? `w=${fieldInteger(window)}` : `qu=${fieldString(quota.unit)}`
  const item = `${fieldString(name)};q=${fieldInteger(quota.limit)};${span}`
  return {
    policy: printable(policyOf(name)),
    limit: String(quota.limit),
    window: String(window),
    burst: quota.burst === null ? null : String(quota.burst),
    name: fieldString(name),
    item: quota.burst === null ? item : `${item};headgate-burst=${fieldInteger(quota.burst)}`,
  }
}
