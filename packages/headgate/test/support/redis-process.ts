import { redisBinary } from './redis-binary.ts'
import { launchRedis, type RedisProcess } from './redis-launch.ts'

export type { RedisProcess } from './redis-launch.ts'

export interface RedisOptions {
  /** Further settings, as on the command line: `['--maxmemory', '1mb']`. They override ours. */
  readonly args?: readonly string[]
  /** For a server that must come back where another one was. Default: a free port. */
  readonly port?: number
  readonly env?: Record<string, string>
}

/** Starts a redis-server that keeps nothing on disk, and resolves once it answers. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisProcess> {
  const settings = await ephemeralSettings()
  return launchRedis(
    ({ port }) => ({
      args: ['--port', String(port), ...settings, ...(options.args ?? [])],
      ...(options.env && { env: options.env }),
    }),
    { port: options.port },
  )
}

/** Settings shared by every data-holding server in the tests. */
export async function ephemeralSettings(): Promise<string[]> {
  const { majorVersion } = await redisBinary()
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  // The default of 5 leaves a new replica empty for 5 s, and a primary killed in that time loses everything.
  settings.push('--repl-diskless-sync-delay', '0')
  // Redis 6 always allows DEBUG and does not know this setting.
  if (majorVersion >= 7) settings.push('--enable-debug-command', 'local')
  return settings
}
