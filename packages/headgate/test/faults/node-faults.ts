/** Every error reply that says something about a node, and how a real server is made to give it. */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findFreePort } from '../support/free-port.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { openConnection, sendCommand } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'

export const USER = { username: 'app', password: 'app-password' }

/** Starts a server with a user of its own, whose rights can be revoked. */
export async function startWithUser(args: readonly string[] = []): Promise<RedisProcess> {
  const server = await startRedis({ args })
  await sendCommand(server.port, 'ACL', 'SETUSER', 'app', 'on', `>${USER.password}`, '~*', '&*', '+@all')
  return server
}

export interface NodeFault {
  /** The words in the log. */
  readonly says: string | RegExp
  readonly args?: readonly string[]
  /** Without a user and password. */
  readonly anonymous?: boolean
  prepare?(server: RedisProcess): Promise<unknown>
  cause(server: RedisProcess): Promise<unknown>
  lift(server: RedisProcess): Promise<unknown>
}

const config = (port: number, ...settings: string[]) => sendCommand(port, 'CONFIG', 'SET', ...settings)
const allSlots = ['0', '16383'] as const

/** Makes the server a replica of nobody. */
async function replicate({ port }: RedisProcess): Promise<void> {
  await sendCommand(port, 'REPLICAOF', '127.0.0.1', await findFreePort())
}

/** Makes saving fail by putting a folder where the file should go, because root may write anywhere. */
async function backUp(server: RedisProcess, expected: 'ok' | 'err'): Promise<void> {
  await sendCommand(server.port, 'BGSAVE')
  await waitUntil(`a backup that ends ${expected}`, async () => {
    const info = String(await sendCommand(server.port, 'INFO', 'persistence'))
    return info.includes('rdb_bgsave_in_progress:0') && info.includes(`rdb_last_bgsave_status:${expected}`)
  })
}

async function rejects(port: number, reply: string): Promise<void> {
  await waitUntil(`the server says ${reply}`, async () => {
    const said = await sendCommand(port, 'EVAL', "return redis.call('SET', KEYS[1], '1')", '1', '{x}')
    return said instanceof Error && said.message.startsWith(reply)
  })
}

export const NODE_FAULTS: Record<string, NodeFault> = {
  LOADING: {
    says: 'LOADING ',
    async cause({ port }) {
      await sendCommand(port, 'DEBUG', 'POPULATE', '20000')
      await config(port, 'key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024')
      sendCommand(port, 'DEBUG', 'RELOAD').catch(() => {})
      await rejects(port, 'LOADING')
    },
    lift: ({ port }) => config(port, 'key-load-delay', '0'),
  },
  BUSY: {
    says: 'BUSY ',
    async cause({ port }) {
      await config(port, 'lua-time-limit', '1')
      sendCommand(port, 'EVAL', 'while true do end', '0').catch(() => {})
      await rejects(port, 'BUSY')
    },
    lift: ({ port }) => sendCommand(port, 'SCRIPT', 'KILL'),
  },
  OOM: {
    says: 'OOM ',
    cause: ({ port }) => config(port, 'maxmemory', '1'),
    lift: ({ port }) => config(port, 'maxmemory', '0'),
  },
  READONLY: {
    says: /READONLY |closed|not connected|isn't writeable/i,
    cause: replicate,
    lift: ({ port }) => sendCommand(port, 'REPLICAOF', 'NO', 'ONE'),
  },
  MASTERDOWN: {
    says: 'MASTERDOWN ',
    args: ['--replica-serve-stale-data', 'no'],
    cause: replicate,
    lift: ({ port }) => sendCommand(port, 'REPLICAOF', 'NO', 'ONE'),
  },
  NOREPLICAS: {
    says: 'NOREPLICAS ',
    cause: ({ port }) => config(port, 'min-replicas-to-write', '1'),
    lift: ({ port }) => config(port, 'min-replicas-to-write', '0'),
  },
  MISCONF: {
    says: 'MISCONF ',
    args: ['--save', '3600 1000000'],
    async cause(server) {
      await mkdir(join(server.dir, 'dump.rdb', 'in-the-way'), { recursive: true })
      await backUp(server, 'err')
    },
    async lift(server) {
      await rm(join(server.dir, 'dump.rdb'), { recursive: true })
      await backUp(server, 'ok')
    },
  },
  CLUSTERDOWN: {
    says: 'CLUSTERDOWN ',
    args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '500'],
    async prepare({ port }) {
      await sendCommand(port, 'CLUSTER', 'ADDSLOTSRANGE', ...allSlots)
      await waitUntil('the cluster is up', async () =>
        String(await sendCommand(port, 'CLUSTER', 'INFO')).includes('cluster_state:ok'),
      )
    },
    cause: ({ port }) => sendCommand(port, 'CLUSTER', 'DELSLOTSRANGE', ...allSlots),
    lift: ({ port }) => sendCommand(port, 'CLUSTER', 'ADDSLOTSRANGE', ...allSlots),
  },
  NOPERM: {
    says: 'NOPERM ',
    cause: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '-evalsha', '-eval'),
    lift: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '+evalsha', '+eval'),
  },
  'ERR … can’t run this command': {
    says: "can't run this command",
    cause: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '-zadd'),
    lift: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', '+zadd'),
  },
  'WRONGPASS, when it connects again': {
    says: /./,
    async cause({ port }) {
      await sendCommand(port, 'ACL', 'SETUSER', 'app', 'resetpass', '>another')
      await sendCommand(port, 'CLIENT', 'KILL', 'TYPE', 'normal')
    },
    lift: ({ port }) => sendCommand(port, 'ACL', 'SETUSER', 'app', `>${USER.password}`),
  },
  'NOAUTH, when it connects again': {
    says: /./,
    anonymous: true,
    async cause({ port }) {
      const connection = await openConnection(port)
      await connection.send('ACL', 'SETUSER', 'default', 'resetpass', '>secret')
      await connection.send('CLIENT', 'KILL', 'TYPE', 'normal')
      connection.close()
    },
    async lift({ port }) {
      const connection = await openConnection(port)
      await connection.send('AUTH', 'secret')
      await connection.send('ACL', 'SETUSER', 'default', 'nopass')
      connection.close()
    },
  },
}
