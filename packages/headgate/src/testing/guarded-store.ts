import type { Answer } from '../engine/question.js'
import type { StoreHealth } from '../store/guard/health.js'
import { createPipeline } from '../store/guard/pipeline.js'
import { type PipelineOptions, parsePipelineOptions } from '../store/guard/pipeline-options.js'
import type { Remote } from '../store/guard/remote.js'
import { toStore } from '../store/stage.js'
import type { Store } from '../store/store.js'
import { systemClock, systemTimers } from '../time/clock.js'

/** The options of `redisStore` for when Redis does not answer. `processes` defaults to 1. */
export type GuardedStoreOptions = PipelineOptions

/**
 * Puts any store in the place of Redis behind the pipeline of `redisStore`: the same breaker, deadline, leases and
 * fallback, with one call per question. The pipeline waits in real time, whatever clock the store uses.
 */
export function guardedStore(
  store: Store,
  options: GuardedStoreOptions = {},
): Store & { health(): StoreHealth } {
  const settings = parsePipelineOptions({ ...options, processes: options.processes ?? 1 })
  const pipeline = createPipeline(remoteOf(store), settings, {
    clock: systemClock,
    timers: systemTimers,
    random: Math.random,
  })
  return toStore(pipeline, {
    health: pipeline.health,
    ...(settings.mode !== 'throw' && { onStoreFailure: settings.mode }),
    ...(store.clock && { clock: store.clock }),
  })
}

function remoteOf(store: Store): Remote {
  return {
    source: store.source,
    isSplit: false,
    laneOf: () => 0,
    nodeOf: () => '',
    nameOf: () => 'the store',
    ask: (action, questions) =>
      Promise.all(questions.map(async (question): Promise<Answer> => store[action](question))),
    refund: async refunds => store.refund(refunds),
    renew: async renewals => store.renew?.(renewals) ?? renewals.map(() => false),
    reset: async checks => store.reset(checks),
    heartbeat: async () => ({ live: 1, recent: 1, rewinds: 0 }),
    close: () => store.close(),
  }
}
