/**
 * The way of a question to a store that is not in this process, on one page:
 *
 *   deny cache → share of the region → fallback → leases → split by subject → batch
 *              → call cap → breaker → first connection → counts → deadline → send
 *
 * Up to the batch a stage is passed once a question, from there on once a call. A stage is made from the next one, so the
 * code below is to be read from the bottom up. One that a setting leaves out is not there at all.
 */

import type { Question } from '../../engine/question.js'
import { inThisContext, safely } from '../../observe/emit.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { Stage } from '../stage.js'
import { withBatching } from './batch.js'
import { type Breakers, withBreakers } from './breakers.js'
import { type Call, type Send, sendCall, whenConnected, withCallCap, withCounts } from './call.js'
import { Deadlines, withDeadline } from './deadlines.js'
import { withDenyCache } from './deny-cache.js'
import { withFallback } from './fallback.js'
import { createFleet, type Fleet } from './fleet.js'
import type { GuardEvent, OnGuardEvent } from './guard-event.js'
import { createTally, type StoreHealth } from './health.js'
import { withLeases } from './leases.js'
import { createLocalShare } from './local-share.js'
import { logOutages } from './log-outages.js'
import type { PipelineSettings } from './pipeline-options.js'
import { withRegionShare } from './region-share.js'
import type { Remote } from './remote.js'
import { splitBySubject } from './split-by-subject.js'

/** Clock, timers and randomness. A simulation passes in its own. */
export interface World {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  /** Called for every call that is sent, with the promise of its answer. */
  onSent?(reply: Promise<unknown>): void
}

/** The first stage of the pipeline, and the health of the store behind it. */
export interface Pipeline extends Stage {
  health(): StoreHealth
}

const HEARTBEAT_MS = 1_000

/** Gives every question a decision, whatever happens to the store (or the error, in mode `throw`). */
export function createPipeline(remote: Remote, settings: PipelineSettings, world: World): Pipeline {
  const { deadlineMs, mode, share, deniedSubjects, maxChecks, maxCallsPerSecond, recorder } = settings
  const { clock, timers } = world
  const tally = createTally()
  const log = logOutages({
    logger: settings.logger,
    everyMs: settings.logEveryMs,
    mode,
    nameOf: remote.nameOf,
    nowMs: () => clock.nowUs() / 1000,
    sharedAmong: () => fleet.mayBeLive(),
  })
  const onEvent = eventsOf(settings, safely(log), tally.count)
  const fleet: Fleet = fleetOf(remote, settings, timers, onEvent)
  const { firstConnection } = remote
  if (recorder !== null) recorder.callCapPerSecond = maxCallsPerSecond
  const deadlines = new Deadlines({
    deadlineMs,
    source: remote.source,
    clock,
    timers,
    oneTimerEach: remote.onDemand === true,
    firstConnection,
  })

  const timely = withDeadline(sendCall, deadlines)
  const counted = recorder === null ? timely : withCounts(timely, recorder, clock)
  const connected = firstConnection === undefined ? counted : whenConnected(counted, firstConnection)
  const breakers = mode === 'throw' ? null : breakersOf(connected, remote, settings, world, onEvent)
  const guarded = breakers?.send ?? connected
  const capped = maxCallsPerSecond === null ? guarded : withCallCap(guarded, maxCallsPerSecond, clock)

  const batched = withBatching(remote, capped, {
    maxChecks,
    timers,
    breakers,
    close() {
      breakers?.close()
      return remote.close()
    },
  })
  const split = remote.isSplit ? splitBySubject(batched, deadlines) : batched
  const leased = withLeases(split, {
    clock,
    timers,
    deadlines,
    liveProcesses: fleet.live,
    ...((settings.onEvent || recorder) && {
      onGrant: (limit, units) => onEvent({ type: 'lease', limit, units }),
    }),
  })
  const decided =
    mode === 'throw'
      ? leased
      : withFallback(leased, { mode, local: createLocalShare(clock, fleet.mayBeLive), onEvent })
  const ofRegion = share === null ? decided : withRegionShare(decided, share)
  const first =
    deniedSubjects === 0
      ? ofRegion
      : withDenyCache(ofRegion, { clock: remote.testClock ?? clock, maxSubjects: deniedSubjects })

  return {
    ...first,
    health: () => ({
      ...tally.read(),
      liveProcesses: fleet.live(),
      sharedAmong: fleet.mayBeLive(),
      evictionPolicyUnsafe: remote.isEvictionUnsafe?.() ?? false,
    }),
    async close() {
      fleet.stop()
      firstConnection?.hurry()
      await first.close()
      deadlines.stop()
    },
  }
}

function breakersOf(
  next: Send,
  remote: Remote,
  settings: PipelineSettings,
  world: World,
  onEvent: OnGuardEvent,
): Breakers {
  const breakers = withBreakers(next, {
    ...settings.breaker,
    clock: world.clock,
    timers: world.timers,
    random: world.random,
    onEvent,
    ...(remote.replaceConnection && { onOpen: remote.replaceConnection }),
    probeCall: (node: string, question: Question): Call<unknown> => ({
      node,
      sample: undefined,
      checks: 1,
      send: () => remote.ask('decide', [question], remote.askedAt?.() ?? ''),
    }),
  })
  remote.onConnected?.(breakers.probeNow)
  return breakers
}

/** Returns how many processes share the limits: counted, or as configured. In mode `throw` nobody needs to know. */
function fleetOf(
  remote: Remote,
  { processes, mode }: PipelineSettings,
  timers: Timers,
  onEvent: OnGuardEvent,
): Fleet {
  const given = (): number => processes ?? 1
  if (mode === 'throw') return { live: given, mayBeLive: given, stop() {} }
  const fleet = createFleet(
    () => remote.heartbeat(),
    HEARTBEAT_MS,
    timers,
    () => onEvent({ type: 'rewind' }),
  )
  return processes === null ? fleet : { ...fleet, live: given, mayBeLive: given }
}

function eventsOf(settings: PipelineSettings, log: OnGuardEvent, count: OnGuardEvent): OnGuardEvent {
  const observe = safely(settings.onEvent ?? (() => {}))
  const emit = inThisContext<GuardEvent>(event => {
    log(event)
    observe(event)
  })
  const { recorder } = settings
  return event => {
    count(event)
    recorder?.event(event)
    emit(event)
  }
}
