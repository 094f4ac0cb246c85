/** Rejects options and policy files that a limiter does not accept, before anything is put in force. */
import { unexpected } from '../errors/headgate-error.js'
import { type Config, RULES } from '../policy/config.js'
import type { Store } from '../store/store.js'

/** Rejects a config that is not one, and one beside policies. */
export function rejectOptions(options: {
  readonly config?: unknown
  readonly policies?: unknown
  readonly tiers?: unknown
}): void {
  if (!('config' in options)) return
  rejectNoConfig(options.config)
  if (options.policies === undefined && options.tiers === undefined) return
  const expected = 'either a config or policies and tiers'
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'config', expected, 'both')
}

/** Validates what a program passes to `reload`, bypassing the types. */
export function rejectReload(config: Config, started: Config, store: Store): void {
  rejectNoConfig(config)
  rejectMovedFleet(config, started, store)
}

function rejectNoConfig(config: unknown): void {
  const { [RULES]: rules, tiers } = (config ?? {}) as Partial<Config>
  if (typeof rules === 'object' && typeof tiers === 'object') return
  const expected = 'what loadConfig() or defineConfig() returns'
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'config', expected, config)
}

/** Keys are built from them when the process starts: a file that changes one would keep counting under the old. */
function rejectMovedFleet(config: Config, started: Config, { control }: Store): void {
  for (const [field, leftOut] of [
    ['prefix', 'ratelimit'],
    ['tenant', ''],
  ] as const) {
    const atStart = started[field] ?? control?.fleet?.[field] ?? leftOut
    const now = config[field] ?? (started[field] === undefined ? atStart : leftOut)
    if (now === atStart) continue
    const expected = `${JSON.stringify(atStart)} as when the process started, or a restart`
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', `config ${field}`, expected, now)
  }
}

/** A store is created before the limiter, so the file's settings for its keys would otherwise be silently ignored. */
export function rejectOtherFleet(config: Config, { control }: Store): void {
  for (const field of ['prefix', 'tenant', 'service'] as const) {
    const said = config[field]
    const has = control?.fleet?.[field]
    if (said === undefined || has === undefined || said === has) continue
    const expected = `that of the store, ${JSON.stringify(has)}, as in redisStore(client, { ${field} })`
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', `config ${field}`, expected, said)
  }
}
