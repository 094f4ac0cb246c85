/**
 * The counts of the processes of a fleet, in Redis: each leaves its last second there once a second, under its
 * name. Bounded in number and length, and gone some seconds after a process is.
 */
import type { DeniedCallers } from '../../observe/statistics/denials.js'
import type { Report } from '../../observe/statistics/report.js'
import type { LimiterReading, Statistics } from '../../observe/statistics/statistics.js'
import { VERSION } from '../../observe/version.js'
import { encodeTenant } from '../../subject/key.js'
import type { ProcessReport } from '../statistics-store.js'
import type { Beside } from './redis-remote.js'
import { scripts } from './scripts.gen.js'

/** What this process leaves. */
export interface OwnReports {
  /** The name of this process there. */
  readonly id: string
  /** Sets the data to leave with the next reports. */
  setNote(note: unknown): void
  stop(): void
}

/** Where a store shows how Redis is asked beside the requests. */
export const BESIDE: unique symbol = Symbol.for('headgate.beside')

const KEEP_US = 5_000_000
const KEEP_DENIALS_US = 86_400_000_000
export const MAX_PROCESSES = 1_000
const MAX_DENIALS = 10_000
/** A report of fifty tallies is a quarter of this. */
const MAX_REPORT_LENGTH = 32_768
export const CONNECT_WITHIN_MS = 500

/** The beginning of the keys. */
export function statisticsKey({ prefix, tenant }: Beside): string {
  return `${prefix}:{stats${tenant === '' ? '' : `:${encodeTenant(tenant)}`}}`
}

/** Leaves a report, or without one reads those that are there. */
export function runStatistics(
  beside: Beside,
  name: string,
  report: string,
  denials: readonly string[],
): Promise<unknown> {
  const base = statisticsKey(beside)
  const keys = [`${base}:processes`, `${base}:reports`, `${base}:denials`]
  const bounds = [KEEP_US, KEEP_DENIALS_US, MAX_PROCESSES, MAX_DENIALS].map(String)
  const args = [beside.clockUs(), name, report, ...bounds, ...denials]
  return beside.call(scripts.statistics, keys, args, CONNECT_WITHIN_MS)
}

/** Leaves the reports of this process; without statistics none. */
export function leaveReports(
  beside: Beside,
  member: () => string,
  statistics: Statistics | null,
): OwnReports {
  // If nothing is left there, not even a name is needed.
  const id = statistics === null ? '' : member()
  let note: unknown = null
  let sequence = 0
  let isSending = false

  async function leave({ denials, ...report }: Report): Promise<void> {
    // A Redis that takes longer than a second is skipped until it has answered.
    if (isSending || statistics === null) return
    isSending = true
    try {
      const { startedAtMs, limiters } = statistics.read()
      const left: ProcessReport = {
        ...report,
        ...{
          id,
          service: beside.service,
          version: VERSION,
          configVersion: limiters.find(({ configVersion }) => configVersion !== null)?.configVersion ?? null,
        },
        ...{ startedAtMs, sequence: ++sequence, note },
        shadow: wouldBeOf(limiters.map(({ shadow }) => shadow)),
        candidates: wouldBeOf(limiters.map(({ candidates }) => candidates)),
      }
      const text = JSON.stringify(left)
      const shorter =
        text.length <= MAX_REPORT_LENGTH
          ? text
          : JSON.stringify({
              ...left,
              decisions: [],
              ...unlisted(left),
              shadowCallers: { ...left.shadowCallers, ...unlisted(left.shadowCallers) },
            })
      await runStatistics(
        beside,
        id,
        shorter,
        denials.map(denial => JSON.stringify(denial)),
      )
    } catch {
      // The calls of requests report the same failure.
    } finally {
      isSending = false
    }
  }

  const stop = statistics === null ? () => {} : statistics.onSecond(report => void leave(report))
  return {
    id,
    stop,
    setNote(value) {
      note = value
    },
  }
}

type WouldBe = LimiterReading['shadow']

function wouldBeOf(all: readonly WouldBe[]): WouldBe {
  const sums: Record<string, { wouldAllow: number; wouldDeny: number }> = Object.create(null)
  for (const [policy, { wouldAllow, wouldDeny }] of all.flatMap(one => Object.entries(one))) {
    const sum = sums[policy] ?? { wouldAllow: 0, wouldDeny: 0 }
    sums[policy] = { wouldAllow: sum.wouldAllow + wouldAllow, wouldDeny: sum.wouldDeny + wouldDeny }
  }
  return sums
}

/** Lists nobody, so that the one who was denied most is among those who are not listed. */
function unlisted({ deniedCallers, unlistedAtMost }: DeniedCallers) {
  return { deniedCallers: [], unlistedAtMost: deniedCallers[0]?.denied ?? unlistedAtMost }
}
