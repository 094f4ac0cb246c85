import { openConnection } from '../support/resp.ts'

/** Counts the entries of every log on these servers, by key: the actual charges, whatever the clients think. */
export async function countCharges(ports: readonly number[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const port of ports) {
    const connection = await openConnection(port)
    try {
      const keys = await connection.send('KEYS', '*')
      if (!Array.isArray(keys)) throw new Error(String(keys))
      const cards = await Promise.all(keys.map(key => connection.send('ZCARD', String(key))))
      for (const [index, key] of keys.entries()) counts.set(String(key), Number(cards[index]))
    } finally {
      connection.close()
    }
  }
  return counts
}

export function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}
