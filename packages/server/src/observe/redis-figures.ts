/** Reads Redis's figures about itself, operations and memory, every few seconds. */

export interface RedisFigures {
  readonly usedMemoryBytes: number
  /** Null where Redis has no bound of its own. */
  readonly maxMemoryBytes: number | null
  readonly opsPerSecond: number
  /** Of all its databases, ours and others'. */
  readonly keys: number
  /** Whether it may remove limits when its memory is full. */
  readonly evictionPolicyUnsafe: boolean
  readonly readAtMs: number
}

/** Bounds on what Redis may use; null where none is set. */
export interface Budget {
  readonly opsPerSecond: number | null
  readonly memoryBytes: number | null
}

const EVERY_MS = 5_000

/** Asks no more often than every five seconds; in between it returns the last answer. */
export function createRedisReader(
  info: () => Promise<string>,
  isEvictionUnsafe: () => boolean,
  unixMs: () => number,
): () => Promise<RedisFigures> {
  let last: RedisFigures | null = null
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
