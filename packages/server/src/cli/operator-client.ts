import { createLimiter } from 'headgate'
import { defineConfig, loadConfig } from 'headgate/config'
import { createFleetStats } from '../observe/fleet-stats.js'
import { httpOperatorClient } from '../operators/http-operator-client.js'
import { gateOperatorClient, type OperatorClient, type ServerClient } from '../operators/operator-client.js'
import { UnavailableError } from '../operators/operator-errors.js'
import { createRedisStore } from '../redis/connect.js'
import { createUsagePages } from '../redis/usage-pages.js'
import { fleetOf } from './fleet.js'
import { inOption } from './in-option.js'
import type { OperatorFlags, ServerFlags } from './operator-command.js'
import { callersToken, subjectSecret } from './read-secrets.js'
import { UsageError } from './usage-error.js'

const DEFAULT_SERVER = 'http://127.0.0.1:8082'
const CONNECTING_MS = 1_000
const WITH_REDIS = [
  ['config', '--config'],
  ['subjectSecretFile', '--subject-secret-file'],
] as const

/** Returns the client that a command line names: a running server's, or Redis itself. */
export async function operatorClient(
  flags: OperatorFlags,
  onWarning: (message: string) => void,
): Promise<OperatorClient> {
  const { server, redis } = flags
  if (redis === undefined) {
    for (const [name, option] of WITH_REDIS) {
      if (flags[name] === undefined) continue
      throw new UsageError({ field: option, expected: 'together with --redis; a server has its own' })
    }
    return serverClient(flags)
  }
  if (flags.tokenFile !== undefined) {
    throw new UsageError({ field: '--token-file', expected: 'together with --server; Redis has its own' })
  }
  if (server !== undefined)
    throw new UsageError({ field: '--server', expected: 'one of --server and --redis', got: 'both' })
  return redisOperatorClient(redis, flags, onWarning)
}

/** Returns the client of the running server that a command line names. */
export async function serverClient({ server, tokenFile }: ServerFlags): Promise<ServerClient> {
  return httpOperatorClient(
    serverUrl(server ?? (process.env.HEADGATE_SERVER || DEFAULT_SERVER)),
    await callersToken(tokenFile, process.env),
  )
}

async function redisOperatorClient(
  url: string,
  flags: OperatorFlags,
  onWarning: (message: string) => void,
): Promise<OperatorClient> {
  const config = flags.config === undefined ? defineConfig({}) : await loadConfig(flags.config)
  const secret = await subjectSecret(flags.subjectSecretFile, process.env)
  // A command that never decides without Redis is not counted among the processes that share its limits.
  const store = inOption('--redis', () =>
    createRedisStore({ url, ...fleetOf(config), onStoreFailure: 'throw' }),
  )
  const limiter = createLimiter({ config, store, onWarning, ...(secret !== null && { subject: { secret } }) })
  const fleetStats = createFleetStats(limiter, store, config)
  const stats = async () => {
    const snapshot = await fleetStats()
    if (snapshot !== null) return snapshot
    throw new UnavailableError('--redis: expected one that answers; got none within a second')
  }
  const pages = createUsagePages({ redis: { url, ...fleetOf(config) }, config: () => config })
  const client = gateOperatorClient(limiter, stats, pages)
  return {
    ...client,
    async close() {
      // node-redis keeps a socket open that it was told to destroy while connecting, and the command would never
      // end.
      await store.ready({ timeoutMs: CONNECTING_MS })
      await client.close()
    },
  }
}

/** Credentials are rejected, because they would be shown and `fetch` does not send them. */
export function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url !== null && isHttp && url.username === '' && url.password === '') return url.origin
  const got = text.includes('@') ? 'one with an @' : JSON.stringify(text.slice(0, 100))
  throw new UsageError({
    field: '--server',
    expected: `http://host:port without credentials, such as ${DEFAULT_SERVER}`,
    got,
  })
}
