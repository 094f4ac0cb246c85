/** Refuses options and policy files that a gate does not accept, before anything is put in force. */
import { unexpected } from '../errors/headgate-error.js'
import { refuseUnknown } from '../errors/refuse-unknown.js'
import type { Config } from '../policy/config.js'
import type { Store } from '../store/store.js'

const OPTIONS = ['config', 'store', 'subject', 'clock', 'logger', 'onEvent', 'statistics', 'onWarning']

export function refuseOptions(options: { readonly config?: unknown } | undefined): void {
  // Missing options are reported before unknown ones: both may be one misspelt name.
  if (options?.config !== undefined) refuseUnknown(options, OPTIONS)
  refuseNoConfig(options?.config)
}

/** Validates what a program passes to `reload`, bypassing the types. */
export function refuseReload(config: Config, started: Config, store: Store): void {
  refuseNoConfig(config)
  refuseMovedFleet(config, started, store)
}

function refuseNoConfig(config: unknown): void {
  if (typeof (config as Config | undefined)?.tiers === 'object') return
  const expected = 'what loadConfig() or defineConfig() returns'
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'config', expected, config)
}

/** Keys are built from them when the process starts: a file that changes one would keep counting under the old. */
function refuseMovedFleet(config: Config, started: Config, { control }: Store): void {
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

/** A store is created before the gate, so the file's settings for its keys would otherwise be silently ignored. */
export function refuseOtherFleet(config: Config, { control }: Store): void {
  for (const field of ['prefix', 'tenant', 'service'] as const) {
    const said = config[field]
    const has = control?.fleet?.[field]
    if (said === undefined || has === undefined || said === has) continue
    const expected = `that of the store, ${JSON.stringify(has)}, as in redisStore(client, { ${field} })`
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', `config ${field}`, expected, said)
  }
}
