import { readInfo } from '../support/redis-info.ts'
import { sendCommand } from '../support/resp.ts'

export interface Keyspace {
  readonly keys: number
  /** Keys that have a TTL. */
  readonly expires: number
}

/** Returns how many keys the server holds, and how many of them will expire. */
export async function readKeyspace(port: number): Promise<Keyspace> {
  const { db0 = 'keys=0,expires=0' } = await readInfo(port, 'INFO', 'keyspace')
  const [, keys, expires] = /^keys=(\d+),expires=(\d+)/.exec(db0) ?? []
  return { keys: Number(keys), expires: Number(expires) }
}

/** Returns the names of all unexpired keys. */
export async function listKeys(port: number): Promise<string[]> {
  const keys = await sendCommand(port, 'KEYS', '*')
  return Array.isArray(keys) ? keys.map(String) : []
}
