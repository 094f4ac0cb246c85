import type { Config } from '../policy/config.js'
import { digest } from '../subject/digest.js'

const LENGTH = 8
const known = new WeakMap<Config, string>()

/** Returns eight characters that are the same for the same policy file in every process, and differ for another. */
export function versionOf(config: Config): string {
  let version = known.get(config)
  if (version === undefined) {
    const text = JSON.stringify(config, (_, value) => (value instanceof Map ? [...value] : value))
    version = digest('headgate config', text).slice(0, LENGTH)
    known.set(config, version)
  }
  return version
}
