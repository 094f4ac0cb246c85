/** Reads Redis's stats about itself, operations and memory, every few seconds. */

export interface RedisStats {
  readonly usedMemoryBytes: number
  /** Null if Redis has no bound of its own. */
  readonly maxMemoryBytes: number | null
  readonly opsPerSecond: number
  /** In all its databases, ours and others'. */
  readonly keys: number
  /** Whether it may evict limits when its memory is full. */
  readonly evictionPolicyUnsafe: boolean
  readonly readAtMs: number
}

/** Bounds on what Redis may use; null if not set. */
export interface Budget {
  readonly opsPerSecond: number | null
  readonly memoryBytes: number | null
}

const EVERY_MS = 5_000

/** Asks at most every five seconds, and returns the last answer in between. */
export function createRedisReader(
  info: () => Promise<string>,
  isEvictionUnsafe: () => boolean,
  unixMs: () => number,
): () => Promise<RedisStats> {
  let last: RedisStats | null = null
  return async () => {
    if (last !== null && unixMs() - last.readAtMs < EVERY_MS) return last
    const text = await info()
    const max = fieldOf(text, 'maxmemory') ?? 0
    last = {
      usedMemoryBytes: fieldOf(text, 'used_memory') ?? 0,
      maxMemoryBytes: max === 0 ? null : max,
      opsPerSecond: fieldOf(text, 'instantaneous_ops_per_sec') ?? 0,
      keys: keysOf(text),
      evictionPolicyUnsafe: isEvictionUnsafe(),
      readAtMs: unixMs(),
    }
    return last
  }
}

/** A database without keys is not in the list. */
function keysOf(info: string): number {
  return [...info.matchAll(/^db\d+:keys=(\d+)/gm)].reduce((sum, [, keys]) => sum + Number(keys), 0)
}

function fieldOf(info: string, name: string): number | null {
  const value = new RegExp(`^${name}:(\\d+)\\r?$`, 'm').exec(info)?.[1]
  return value === undefined ? null : Number(value)
}
