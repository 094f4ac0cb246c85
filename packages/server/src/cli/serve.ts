import type { Store } from 'headgate'
import {
  type Config,
  describeValue,
  loadSettings,
  parseUpstream,
  type Settings,
  type Upstream,
} from 'headgate/config'
import { createRedisStore } from '../redis/connect.js'
import { startService } from '../service.js'
import { banner } from './banner.js'
import { openConfig } from './live-config.js'
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

/** Serves until a signal comes, then stops cleanly. */
export async function serve(flags: ServeFlags): Promise<void> {
  const stopped = stopSignal()
  const { host, port, adminPort, demo = false } = flags
  // Whoever read our lines may leave; the gateway stays.
  process.stdout.on('error', () => {})
  const log = (line: string) => process.stdout.write(`${line}\n`)
  const settings = loadSettings(process.env)
  const file = flags.config
  const live = await openConfig({ ...(file !== undefined && { file }), demo, settings, log })
  try {
    const { config } = live
    const upstream = upstreamOf(flags)
    if (upstream === null && config.upstream === null && !demo) {
      throw new UsageError(
        'upstream: expected one in the policy file or with --upstream, or --demo; got none',
      )
    }
    const store = storeOf(flags, settings, config)
    const service = await startService({
      config,
      host,
      port,
      adminPort,
      upstream,
      demo,
      log,
      configState: live.state,
      ...(store && { store }),
    })
    live.onChange(service.apply)
    const isDemo = upstream === null && config.upstream === null
    log(banner(service, { isDemo, isShared: store !== undefined }))
    const signal = await stopped
    log(`${signal}: finishing what is under way`)
    await service.stop()
    log('stopped')
  } finally {
    live.close()
  }
}

/** Where the flag, then the environment, says Redis is. Null: the limits are kept in this process. */
function storeOf({ redis }: ServeFlags, settings: Settings, config: Config): Store | undefined {
  const url = redis ?? (settings.distributed ? settings.redisUrl : null)
  if (url === null) return undefined
  const { prefix, tenant } = config
  try {
    return createRedisStore({
      url,
      ...(prefix !== undefined && { prefix }),
      ...(tenant !== undefined && { tenant }),
    })
  } catch (error) {
    const name = redis === undefined ? 'RATE_LIMIT_REDIS_URL' : '--redis'
    throw new UsageError(`${name}: ${(error as Error).message}`)
  }
}

function upstreamOf({ upstream }: ServeFlags): Upstream | null {
  if (upstream === undefined) return null
  const parsed = parseUpstream(upstream)
  if (parsed !== null) return parsed
  // What stands before an @ may be a password.
  const got = upstream.includes('@') ? 'one with an @' : describeValue(upstream)
  throw new UsageError(`--upstream: expected http://host:port without path, query or credentials; got ${got}`)
}
