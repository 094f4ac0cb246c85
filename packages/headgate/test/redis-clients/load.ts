import type { Question } from '../../src/store/ask-store.js'
import { askStore } from '../../src/store/ask-store.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'

/** The outcomes of the calls of one load. */
export interface LoadResult {
  sent: number
  acknowledged: number
  /** Calls that were not settled 20 ms after their deadline. */
  late: number
  readonly errors: string[]
}

export interface Load {
  readonly result: LoadResult
  stop(): Promise<LoadResult>
}

/** Asks the questions in turn, `perTick` every `everyMs`, whatever becomes of earlier ones. */
export function startLoad(
  store: RedisStore,
  questions: readonly Question[],
  { deadlineMs, everyMs = 4, perTick = 1 }: { deadlineMs: number; everyMs?: number; perTick?: number },
): Load {
  const result: LoadResult = {
    sent: 0,
    acknowledged: 0,
    late: 0,
    errors: [],
  }
  const open = new Set<Promise<void>>()
  let stopped = false

  async function ask(question: Question): Promise<void> {
    const settled = watchDeadline(deadlineMs, () => result.late++)
    try {
      await askStore(store, question)
      result.acknowledged++
    } catch (error) {
      result.errors.push((error as Error).message)
    }
    settled()
  }

  function tick(): void {
    if (stopped) return
    for (let call = 0; call < perTick; call++) {
      const asked = ask(questions[result.sent++ % questions.length] as Question).finally(() =>
        open.delete(asked),
      )
      open.add(asked)
    }
    setTimeout(tick, everyMs)
  }
  tick()

  return {
    result,
    async stop() {
      stopped = true
      await Promise.all(open)
      return result
    },
  }
}

const TOLERANCE_MS = 20
const GRACE_MS = 15

/**
 * Calls `onLate` unless the returned function was called before. Uses timers, not the clock: on a busy machine they
 * are late, but not out of order. The time of a call starts when it has left, which is two turns of the event loop
 * later.
 */
export function watchDeadline(deadlineMs: number, onLate: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const start = (): void => {
    if (isOver) return
    timer = setTimeout(() => {
      timer = setTimeout(onLate, GRACE_MS)
    }, deadlineMs + TOLERANCE_MS)
  }
  setImmediate(() => setImmediate(start))
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}
