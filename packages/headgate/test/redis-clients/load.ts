import type { Question } from '../../src/engine/question.js'
import type { RedisStore } from '../../src/store/redis/redis-store.js'

/** What became of the calls of one load. */
export interface LoadResult {
  sent: number
  acknowledged: number
  /** How late the latest call settled, against a timer of its deadline set at the same moment. */
  worstLateMs: number
  readonly latenciesMs: number[]
  readonly errors: string[]
}

export interface Load {
  readonly result: LoadResult
  stop(): Promise<LoadResult>
}

/** Asks the questions in turn, `perTick` every `everyMs`, whatever becomes of the earlier ones. */
export function startLoad(
  store: RedisStore,
  questions: readonly Question[],
  { deadlineMs, everyMs = 4, perTick = 1 }: { deadlineMs: number; everyMs?: number; perTick?: number },
): Load {
  const result: LoadResult = {
    sent: 0,
    acknowledged: 0,
    worstLateMs: Number.NEGATIVE_INFINITY,
    latenciesMs: [],
    errors: [],
  }
  const open = new Set<Promise<void>>()
  let stopped = false

  async function ask(question: Question): Promise<void> {
    const startedAt = performance.now()
    const elapsed = () => performance.now() - startedAt
    const deadline = new Promise<number>(resolve => setTimeout(() => resolve(elapsed()), deadlineMs))
    try {
      await store.decide(question)
      result.acknowledged++
    } catch (error) {
      result.errors.push((error as Error).message)
    }
    const settledMs = elapsed()
    result.latenciesMs.push(settledMs)
    if (settledMs > deadlineMs) {
      result.worstLateMs = Math.max(result.worstLateMs, settledMs - (await deadline))
    }
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
