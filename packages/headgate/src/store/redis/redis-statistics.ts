/**
 * The counts of the processes of a fleet, in Redis: each leaves its last second there once a second, under its
 * name. Bounded in number and length, and gone some seconds after a process is.
 */
import type { Denial, DeniedCallers } from '../../observe/statistics/denials.js'
import type { Report } from '../../observe/statistics/report.js'
import type { LimiterReading, Statistics } from '../../observe/statistics/statistics.js'
import { VERSION } from '../../observe/version.js'
import { encodeTenant } from '../../subject/key.js'
import type { Timers } from '../../time/clock.js'
import { withinTime } from '../../time/within-time.js'
import type { FleetReading, ProcessReport, RingPoint, StatisticsStore } from '../statistics-store.js'
import { listOf, ReplyReader, replyError, textOf, textsOf } from './reply.js'
import { type Script, scripts } from './scripts.gen.js'
import { lateReply } from './store-error.js'

export interface RedisStatisticsOptions {
  readonly prefix: string
  readonly tenant: string
  readonly service: string
  /** Returns the name of this process, made when needed. */
  readonly member: () => string
  /** Where this process counts; null for one that only reads. */
  readonly statistics: Statistics | null
  /** Runs a script, waiting this long for a connection. */
  readonly call: (script: Script, keys: string[], args: string[], connectWithinMs: number) => Promise<unknown>
  readonly info: (() => Promise<string>) | undefined
  /** The server's time for tests, or ''. */
  readonly clockUs: () => string
  readonly timers: Timers
}

const KEEP_US = 5_000_000
const KEEP_DENIALS_US = 86_400_000_000
const MAX_PROCESSES = 1_000
const MAX_DENIALS = 10_000
/** How many of them are read at once. */
const MAX_PAGE = 2_000
/** An entry of the stream: `<milliseconds>-<number>`. */
const CURSOR = /^\d{1,16}-\d{1,20}$/
const NO_DENIALS = 'none'
/** A report of fifty tallies is a quarter of this. */
const MAX_REPORT_LENGTH = 32_768
const MAX_POINT_LENGTH = 500
const POINT = /^(\d{1,15}) (\d{1,6}) (.*)$/s
const CONNECT_WITHIN_MS = 500
/** Less than a second, so that the next figures are not late when Redis hangs. */
const GIVE_UP_AFTER_MS = 800

export interface RedisStatistics extends StatisticsStore {
  stop(): void
}

export function redisStatistics(options: RedisStatisticsOptions): RedisStatistics {
  const { prefix, tenant, service, statistics } = options
  // If nothing is left there, not even a name is needed.
  const member = statistics === null ? '' : options.member()
  const base = `${prefix}:{stats${tenant === '' ? '' : `:${encodeTenant(tenant)}`}}`
  const keys = [`${base}:processes`, `${base}:reports`, `${base}:denials`]
  let note: unknown = null
  let sequence = 0
  let isSending = false
  /** By cursor. */
  const readings = new Map<string, Promise<unknown>>()

  function run(name: string, report: string, denials: readonly string[]): Promise<unknown> {
    const bounds = [KEEP_US, KEEP_DENIALS_US, MAX_PROCESSES, MAX_DENIALS].map(String)
    const args = [options.clockUs(), name, report, ...bounds, ...denials]
    return options.call(scripts.statistics, keys, args, CONNECT_WITHIN_MS)
  }

  /** One at a time: a hanging Redis is not asked again for what it still owes. */
  function readOnce(cursor: string): Promise<unknown> {
    const reading =
      readings.get(cursor) ?? run('', '', [cursor, String(MAX_PAGE)]).finally(() => readings.delete(cursor))
    readings.set(cursor, reading)
    return withinTime(reading, GIVE_UP_AFTER_MS, options.timers.inBackground, lateReply)
  }

  async function leave({ denials, ...report }: Report): Promise<void> {
    // A Redis that takes longer than a second is skipped until it has answered.
    if (isSending || statistics === null) return
    isSending = true
    try {
      const { startedAtMs, limiters } = statistics.read()
      const left: ProcessReport = {
        ...report,
        ...{
          id: member,
          service,
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
      await run(
        member,
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
    id: member,
    stop,
    setNote(value) {
      note = value
    },
    async keepPoint(ring, { startMs, seconds, text }) {
      const place = (startMs / ring.stepMs) % ring.size
      const args = [place, startMs, seconds, text.slice(0, MAX_POINT_LENGTH), ring.size * ring.stepMs].map(
        String,
      )
      await options.call(scripts.history, [`${base}:history:${ring.name}`], args, CONNECT_WITHIN_MS)
    },
    async readRing(ring) {
      const args = ['', '', '', '', '']
      const asked = options.call(scripts.history, [`${base}:history:${ring.name}`], args, CONNECT_WITHIN_MS)
      const reply = await withinTime(asked, GIVE_UP_AFTER_MS, options.timers.inBackground, lateReply)
      const points = textsOf(reply, 2 * ring.size).flatMap((text, index) =>
        index % 2 === 0 ? [] : pointOf(text),
      )
      const newestMs = Math.max(0, ...points.map(({ startMs }) => startMs))
      return points
        .filter(({ startMs }) => startMs > newestMs - ring.size * ring.stepMs)
        .toSorted((one, other) => one.startMs - other.startMs)
    },
    async serverInfo() {
      if (options.info === undefined) return null
      return textOf(
        await withinTime(options.info(), GIVE_UP_AFTER_MS, options.timers.inBackground, lateReply),
      )
    },
    async read(cursor = NO_DENIALS): Promise<FleetReading> {
      const reader = new ReplyReader(await readOnce(cursor))
      const nowUs = reader.integer(0)
      const reports = textsOf(reader.next(), 2 * MAX_PROCESSES)
      const entries = listOf(reader.next(), MAX_PAGE).map(entryOf)
      reader.end()
      return {
        nowMs: Math.floor(nowUs / 1000),
        processes: reports.flatMap((text, index) =>
          index % 2 === 0 ? [] : parsed<ProcessReport>(text, isReport),
        ),
        denials: entries.flatMap(({ text }) => parsed<Denial>(text, isDenial)),
        cursor: entries.at(-1)?.id ?? cursor,
      }
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

/** Reports of another version have none. */
function isWouldBe(value: unknown): boolean {
  if (value === undefined) return true
  return (
    isObject(value) &&
    Object.values(value).every(one => isObject(one) && isCount(one.wouldAllow) && isCount(one.wouldDeny))
  )
}

/** Skips what somebody else has written there. */
function pointOf(entry: string): RingPoint[] {
  const [, startMs, seconds, text = ''] = POINT.exec(entry) ?? []
  return startMs === undefined ? [] : [{ startMs: Number(startMs), seconds: Number(seconds), text }]
}

/** Lists nobody, so that the one who was denied most is among those who are not listed. */
function unlisted({ deniedCallers, unlistedAtMost }: DeniedCallers) {
  return { deniedCallers: [], unlistedAtMost: deniedCallers[0]?.denied ?? unlistedAtMost }
}

/** Skips what another version or somebody else has left: whoever adds reports up must not stumble over one. */
function parsed<Left extends object>(text: string, isOurs: (left: Fields) => boolean): Left[] {
  try {
    const left: unknown = JSON.parse(text)
    return isObject(left) && isOurs(left) ? [left as Left] : []
  } catch {
    return []
  }
}

type Fields = Readonly<Record<string, unknown>>

function isReport(left: Fields): boolean {
  const { id, service, sequence, durationMs, startedAtMs, shadowDenied } = left
  const { decisions, store, breakers, deniedCallers } = left
  return (
    [id, service].every(isText) &&
    [sequence, durationMs, startedAtMs, shadowDenied].every(isCount) &&
    isListOf(decisions, isTally) &&
    isObject(store) &&
    isObject(store.failures) &&
    [left.shadow, left.candidates].every(isWouldBe) &&
    isLatency(store.latency) &&
    [store.calls, store.checks, store.failedCalls].every(isCount) &&
    isListOf(breakers, ({ node, state }) => isText(node) && isText(state)) &&
    isListOf(deniedCallers, isDeniedCaller) &&
    isShadowCallers(left.shadowCallers)
  )
}

function isDeniedCaller({ subject, denied }: Fields): boolean {
  return isText(subject) && isCount(denied)
}

/** Reports of another version have none. */
function isShadowCallers(value: unknown): boolean {
  if (value === undefined) return true
  return (
    isObject(value) &&
    [value.unlistedAtMost, value.sampledOneIn].every(isCount) &&
    isListOf(value.deniedCallers, isDeniedCaller)
  )
}

function isTally({ policy, allowed, denied, nearLimit, latency }: Fields): boolean {
  return isText(policy) && [allowed, denied, nearLimit].every(isCount) && isLatency(latency)
}

function isLatency(value: unknown): boolean {
  return isObject(value) && isCount(value.sumUs) && Array.isArray(value.counts) && value.counts.every(isCount)
}

function isDenial({ atMs, subject, policy, count }: Fields): boolean {
  return isCount(atMs) && isText(subject) && isText(policy) && isCount(count)
}

/** An entry of a stream: its id, and its only field. */
function entryOf(value: unknown): { readonly id: string; readonly text: string } {
  const [id, fields] = listOf(value, 2)
  if (typeof id !== 'string' || !CURSOR.test(id)) throw replyError('the id of an entry', id)
  return { id, text: textsOf(fields, 2)[1] ?? '' }
}

function isListOf(value: unknown, isOne: (one: Fields) => boolean): boolean {
  return Array.isArray(value) && value.every(one => isObject(one) && isOne(one))
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isCount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0
}
