import type { Config } from 'headgate'
import { type Environment, mistakeAt } from 'headgate/internal'
import type { RedisStoreOptions } from 'headgate/redis'
import { UsageError } from './usage-error.js'

const VARIABLE = 'HEADGATE_SERVICE'
const SERVICE = /^[A-Za-z0-9_.-]{1,64}$/

/**
 * Returns the configuration with the service from the flag or the environment, which take precedence over the file.
 */
export function withService(config: Config, flag: string | undefined, environment: Environment): Config {
  const service = flag ?? (environment[VARIABLE] || undefined)
  if (service === undefined) return config
  if (SERVICE.test(service)) return { ...config, service }
  const source = flag === undefined ? VARIABLE : '--service'
  throw new UsageError(mistakeAt(source, 'up to 64 letters, digits, _ . or -', service))
}

/** Returns the options that tell a store to which fleet a configuration belongs. */
export function fleetOf({
  prefix,
  tenant,
  service,
}: Pick<Config, 'prefix' | 'tenant' | 'service'>): Pick<RedisStoreOptions, 'prefix' | 'tenant' | 'service'> {
  return {
    ...(prefix !== undefined && { prefix }),
    ...(tenant !== undefined && { tenant }),
    ...(service !== undefined && { service }),
  }
}
