import cluster from 'node:cluster'
import { loadSettings } from 'headgate/internal'
import type { LogFormat } from '../log/server-log.js'
import { startService } from '../service/service.js'
import { type AdminFlags, adminOptions } from './admin-flags.js'
import { type AlertFlags, alertOptions } from './alert-flags.js'
import { banner } from './banner.js'
import type { BoundFlags } from './bound-flags.js'
import type { DrainFlags } from './drain-flags.js'
import type { EnvoyFlags } from './envoy-flags.js'
import { openParts } from './open-parts.js'
import { type RedisFlags, rejectWithoutRedis } from './redis-flags.js'
import { serveAsWorker } from './serve-as-worker.js'
import { stopSignals } from './stop-signal.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

/** The flags of `headgate serve`, as typed. */
export interface ServeFlags extends BoundFlags, RedisFlags, AdminFlags, AlertFlags, EnvoyFlags, DrainFlags {
  readonly config?: string
  readonly host: string
  readonly port: number
  readonly workers: number
  readonly upstream?: string
  readonly upstreamCa?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly service?: string
  readonly subjectSecretFile?: string
  readonly demo?: boolean
  readonly logFormat: LogFormat
  readonly accessLog?: boolean
}

/** Serves until a signal comes, then stops cleanly. */
export async function serve(
  flags: ServeFlags,
  terminal: Terminal,
  /** Whether a flag was typed or set in the environment. */
  isGiven: (name: string) => boolean,
): Promise<void> {
  if (cluster.isWorker) return serveAsWorker(flags, terminal)
  if (!hasRedis(flags)) rejectWithoutRedis(isGiven)
  const admin = await adminOptions(flags, process.env)
  const alerts = await alertOptions(flags, process.env)
  rejectWorkersWithoutRedis(flags)
  const { first, second } = stopSignals()
  // The reader of our output may go away; the gateway keeps running.
  process.stdout.removeAllListeners('error').on('error', () => {})
  const { live, isDemo, limits, options } = await openParts(flags, terminal)
  const { log } = options
  try {
    const service = await startService({
      ...options,
      admin,
      alerts,
      configState: live.state,
      policyText: live.text,
      ...(flags.workers > 1 && { openFront: await workersFront(flags.workers) }),
    })
    live.onChange(service.apply)
    log(banner(service, { isDemo, limits, isOpen: admin.tokens.length === 0, workers: flags.workers }))
    const signal = await first
    log(`${signal}: finishing what is in flight`)
    await service.stop(second)
    log('stopped')
  } finally {
    live.close()
  }
}

function hasRedis({ redis }: Pick<ServeFlags, 'redis'>): boolean {
  return redis !== undefined || loadSettings(process.env).distributed
}

/** Without Redis each worker would give out the limits once more. */
function rejectWorkersWithoutRedis({ workers, redis }: ServeFlags): void {
  if (workers === 1 || hasRedis({ ...(redis !== undefined && { redis }) })) return
  throw new UsageError({
    field: '--workers',
    expected: `--redis beside it, where ${workers} processes share the limits`,
    got: 'none, and without it each keeps its own',
  })
}

async function workersFront(count: number) {
  const { frontOfWorkers } = await import('../workers/workers-front.js')
  return frontOfWorkers(count)
}
