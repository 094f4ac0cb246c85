import type { PendingCheck } from '../../src/check/pending-check.ts'
import type { MemoryStore } from '../../src/store/memory/memory-store.ts'
import type { Remote } from '../../src/store/remote/remote.ts'
import { parseRemoteOptions } from '../../src/store/remote/remote-options.ts'
import { RemoteStore } from '../../src/store/remote/remote-store.ts'
import { decideCopy } from '../../src/testing/guarded-store.ts'
import type { Clock, Timers } from '../../src/time/clock.ts'

export interface SlowStoreOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** How many subjects' denials are remembered. Default: none. */
  readonly deniedSubjects?: number
  readonly processes?: number
  readonly deadlineMs?: number
}

/** The remote side of stores over an engine: calls wait until they are let through, and are then executed in order. */
export function slowRemote(engine: MemoryStore) {
  const waiting: (() => () => void)[] = []
  let calls = 0
  const later = <T>(work: () => T): Promise<Awaited<T>> =>
    new Promise((resolve, reject) => {
      calls++
      waiting.push(() => {
        const value = work()
        return () => void Promise.resolve(value).then(resolve as (value: unknown) => void, reject)
      })
    })
  const remote: Remote = {
    source: 'redis',
    isSplit: false,
    batchKeyOf: () => 0,
    nodeOf: () => '',
    nameOf: () => 'the store',
    ask: checks => later(() => Promise.all(checks.map(check => decideCopy(engine, check)))),
    read(reply, checks) {
      for (const [index, check] of checks.entries()) {
        check.copyFrom((reply as readonly PendingCheck[])[index] as PendingCheck)
      }
      return null
    },
    refund: refunds => later(() => engine.refund(refunds)),
    renew: renewals => later(() => engine.renew(renewals)),
    reset: checks => later(() => engine.reset(checks)),
    heartbeat: async () => ({ live: 1, recent: 1, lostWrites: 0 }),
    close() {},
  }
  /** Executes what waits; the answers arrive when the returned function is called. */
  const decideNow = (count = waiting.length): (() => void) => {
    const answers = waiting.splice(0, count).map(work => work())
    return () => {
      for (const answer of answers) answer()
    }
  }
  const letThrough = (count?: number): void => decideNow(count)()
  const open = ({ clock, timers, deniedSubjects = 0, processes = 1, deadlineMs = 30 }: SlowStoreOptions) => {
    const settings = parseRemoteOptions({ onStoreFailure: 'throw', processes, deadlineMs })
    const world = { clock, timers, random: Math.random }
    return new RemoteStore(remote, { ...settings, deniedSubjects, maxChecks: 1 }, world)
  }
  return { remote, open, letThrough, decideNow, calls: () => calls }
}
