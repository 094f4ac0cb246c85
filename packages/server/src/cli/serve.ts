import { existsSync } from 'node:fs'
import type { Store } from 'headgate'
import type { Report } from '../config/config-problem.js'
import { loadConfig } from '../config/load-config.js'
import { builtInConfig, type Config } from '../config/parse-config.js'
import { parseUpstream, type Upstream } from '../config/parse-upstream.js'
import { createRedisStore } from '../redis/connect.js'
import { startService } from '../service.js'
import { banner } from './banner.js'
import { stopSignal } from './stop-signal.js'
import { UsageError } from './usage-error.js'

/** The flags of `headgate serve`, as they were typed. */
export interface ServeFlags {
  readonly config?: string
  readonly host: string
  readonly port: number
  readonly adminPort: number
  readonly upstream?: string
  readonly redis?: string
  readonly demo?: boolean
}

const DEFAULT_FILE = 'headgate.yaml'

/** Serves until a signal comes, then stops cleanly. */
export async function serve(flags: ServeFlags): Promise<void> {
  const stopped = stopSignal()
  const config = configOf(flags)
  const upstream = upstreamOf(flags, config)
  if (upstream === null && !flags.demo) {
    throw new UsageError('upstream: expected one in the policy file or with --upstream, or --demo; got none')
  }
  // Whoever read our lines may leave; the gateway stays.
  process.stdout.on('error', () => {})
  const log = (line: string) => process.stdout.write(`${line}\n`)
  const { host, port, adminPort } = flags
  const store = storeOf(flags)
  const service = await startService({
    config,
    host,
    port,
    adminPort,
    upstream,
    log,
    ...(store && { store }),
  })
  log(banner(service, { isDemo: upstream === null, isShared: store !== undefined }))
  const signal = await stopped
  log(`${signal}: finishing what is under way`)
  await service.stop()
  log('stopped')
}

function configOf({ config, demo }: ServeFlags): Config {
  if (config !== undefined) return loadConfig(config)
  return demo && !existsSync(DEFAULT_FILE) ? builtInConfig : loadConfig(DEFAULT_FILE)
}

function storeOf({ redis }: ServeFlags): Store | undefined {
  if (redis === undefined) return undefined
  try {
    return createRedisStore({ url: redis })
  } catch (error) {
    throw new UsageError(`--redis: ${(error as Error).message}`)
  }
}

function upstreamOf(flags: ServeFlags, config: Config): Upstream | null {
  if (flags.upstream === undefined) return config.upstream
  const refuse: Report = (_path, message) => {
    throw new UsageError(`--upstream: ${message}`)
  }
  return parseUpstream(flags.upstream, refuse)
}
