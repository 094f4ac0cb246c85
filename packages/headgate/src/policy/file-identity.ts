/** What tells a policy file from others: whose fleet it is for, and its version. */
import { invalidOption } from '../errors/headgate-error.js'
import { digest } from '../subject/digest.js'
import type { Config } from './config.js'

/** Whose keys a store writes. */
type Fleet = Readonly<Record<'prefix' | 'tenant' | 'service', string>>

/** Keys are built from them when the process starts: a file that changes one would keep counting under the old. */
export function rejectMovedFleet(config: Config, started: Config, fleet: Fleet | undefined): void {
  for (const [field, leftOut] of [
    ['prefix', 'ratelimit'],
    ['tenant', ''],
  ] as const) {
    const atStart = started[field] ?? fleet?.[field] ?? leftOut
    const now = config[field] ?? (started[field] === undefined ? atStart : leftOut)
    if (now === atStart) continue
    const expected = `${JSON.stringify(atStart)} as when the process started, or a restart`
    throw invalidOption(`config ${field}`, expected, now)
  }
}

/** A store is created before the limiter, so the file's settings for its keys would otherwise be silently ignored. */
export function rejectOtherFleet(config: Config, fleet: Fleet | undefined): void {
  for (const field of ['prefix', 'tenant', 'service'] as const) {
    const said = config[field]
    const has = fleet?.[field]
    if (said === undefined || has === undefined || said === has) continue
    const expected = `that of the store, ${JSON.stringify(has)}, as in redisStore(client, { ${field} })`
    throw invalidOption(`config ${field}`, expected, said)
  }
}

const VERSION_LENGTH = 8
const versions = new WeakMap<Config, string>()

/** Returns eight characters that are the same for the same policy file in every process, and differ for another. */
export function versionOf(config: Config): string {
  let version = versions.get(config)
  if (version === undefined) {
    const text = JSON.stringify(config, (_, value) => (value instanceof Map ? [...value] : value))
    version = digest('headgate config', text).slice(0, VERSION_LENGTH)
    versions.set(config, version)
  }
  return version
}
