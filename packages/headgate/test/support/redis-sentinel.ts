import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startFleet, stopFleet } from './redis-fleet.ts'
import { isReplicaInSync } from './redis-info.ts'
import { launchRedis } from './redis-launch.ts'
import { type RedisProcess, startRedis } from './redis-process.ts'
import { sendCommand } from './resp.ts'
import { waitUntil } from './wait-until.ts'

const MASTER_NAME = 'headgate'

export interface SentinelOptions {
  readonly replicas?: number
  readonly sentinels?: number
  /** How long the primary may be silent before a sentinel considers it down. */
  readonly downAfterMs?: number
}

/** The roles are those at start: a failover changes them in Redis, not here. */
export interface SentinelSetup {
  readonly masterName: string
  /** Plain addresses, as client libraries want them. */
  readonly sentinels: readonly { readonly host: string; readonly port: number }[]
  readonly sentinelProcesses: readonly RedisProcess[]
  readonly primary: RedisProcess
  readonly replicas: readonly RedisProcess[]
  stop(): Promise<void>
}

/** Starts a primary, its replicas and their sentinels. Resolves once a failover could succeed. */
export async function startSentinel(options: SentinelOptions = {}): Promise<SentinelSetup> {
  const { replicas: replicaCount = 1, sentinels: sentinelCount = 3, downAfterMs = 1000 } = options
  const started: RedisProcess[] = []
  const stop = () => stopFleet(started)
  try {
    const primary = await startRedis()
    started.push(primary)
    const replicaOf = ['--replicaof', primary.host, String(primary.port)]
    const replicas = await startFleet(replicaCount, () => startRedis({ args: replicaOf }))
    started.push(...replicas)
    // Sentinels look for new replicas only every 10 s, so those must be there first.
    await waitUntil('replicas are in sync', async () => {
      const synced = await Promise.all(replicas.map(({ port }) => isReplicaInSync(port)))
      return synced.every(Boolean)
    })
    const quorum = Math.floor(sentinelCount / 2) + 1
    const watch = { primary, quorum, downAfterMs }
    const sentinelProcesses = await startFleet(sentinelCount, () => startOneSentinel(watch))
    started.push(...sentinelProcesses)
    await waitUntil('sentinels know each other and the replicas', async () => {
      const views = await Promise.all(sentinelProcesses.map(({ port }) => seenBy(port)))
      return views.every(view => view.sentinels === sentinelCount && view.healthyReplicas === replicaCount)
    })
    const sentinels = sentinelProcesses.map(({ host, port }) => ({ host, port }))
    return { masterName: MASTER_NAME, sentinels, sentinelProcesses, primary, replicas, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Watch {
  readonly primary: RedisProcess
  readonly quorum: number
  readonly downAfterMs: number
}

function startOneSentinel({ primary, quorum, downAfterMs }: Watch): Promise<RedisProcess> {
  return launchRedis(async ({ port, dir }) => {
    // A sentinel writes what it learns back into its configuration, so it needs a file of its own.
    const file = join(dir, 'sentinel.conf')
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${dir}`,
      `sentinel monitor ${MASTER_NAME} ${primary.host} ${primary.port} ${quorum}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${downAfterMs}`,
      // Twice this passes before a lost election is repeated; the default of 3 minutes would stall a test.
      `sentinel failover-timeout ${MASTER_NAME} 5000`,
    ]
    await writeFile(file, `${lines.join('\n')}\n`)
    return { args: [file, '--sentinel'] }
  })
}

async function seenBy(port: number): Promise<{ sentinels: number; healthyReplicas: number }> {
  const others = await sendCommand(port, 'SENTINEL', 'SENTINELS', MASTER_NAME)
  const replicas = await sendCommand(port, 'SENTINEL', 'REPLICAS', MASTER_NAME)
  if (!Array.isArray(others) || !Array.isArray(replicas)) return { sentinels: 0, healthyReplicas: 0 }
  const healthy = replicas.filter(
    fields =>
      Array.isArray(fields) &&
      fields[fields.indexOf('flags') + 1] === 'slave' &&
      fields[fields.indexOf('master-link-status') + 1] === 'ok',
  )
  return { sentinels: others.length + 1, healthyReplicas: healthy.length }
}
