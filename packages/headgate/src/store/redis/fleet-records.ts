/** What the processes of a fleet have left in Redis, for operators: their reports, charts, and the trail of changes. */
import type { Denial } from '../../observe/statistics/denials.js'
import { encodeTenant } from '../../subject/key.js'
import { withinTime } from '../../time/within-time.js'
import type { Change, ChangeTrail } from '../change-trail.js'
import type { FleetReading, ProcessReport, RingPoint, StatisticsStore } from '../statistics-store.js'
import type { Store } from '../store.js'
import {
  BESIDE,
  CONNECT_WITHIN_MS,
  MAX_PROCESSES,
  type OwnReports,
  runStatistics,
  statisticsKey,
} from './own-reports.js'
import type { Beside } from './redis-remote.js'
import type { RedisStore } from './redis-store.js'
import { listOf, ReplyReader, replyError, textOf, textsOf } from './reply.js'
import { scripts } from './scripts.gen.js'
import { lateReply } from './store-error.js'

export interface FleetRecords {
  /** The counts of the processes that share a store. */
  readonly statistics: StatisticsStore
  /** The trail of who changed what. */
  readonly changes: ChangeTrail
}

/** How many denials are read at once. */
const MAX_PAGE = 2_000
/** An entry of the stream: `<milliseconds>-<number>`. */
const CURSOR = /^\d{1,16}-\d{1,20}$/
const NO_DENIALS = 'none'
const MAX_POINT_LENGTH = 500
const POINT = /^(\d{1,15}) (\d{1,6}) (.*)$/s
/** Less than a second, so that the next figures are not late when Redis hangs. */
const GIVE_UP_AFTER_MS = 800

const made = new WeakMap<object, FleetRecords>()

/** The records of the fleet that a store belongs to, always the same object; null for a store that is not in Redis. */
export function fleetRecords(store: RedisStore): FleetRecords
export function fleetRecords(store: Store | undefined): FleetRecords | null
export function fleetRecords(store: Store | undefined): FleetRecords | null {
  if (store === undefined || !(BESIDE in store)) return null
  let records = made.get(store)
  if (records === undefined) {
    const { beside, reports } = (store as RedisStore)[BESIDE]
    records = { statistics: statisticsIn(beside, reports), changes: changesIn(beside) }
    made.set(store, records)
  }
  return records
}

function statisticsIn(beside: Beside, { id, setNote }: OwnReports): StatisticsStore {
  const { call, info, timers } = beside
  const base = statisticsKey(beside)
  /** By cursor. */
  const readings = new Map<string, Promise<unknown>>()

  /** One at a time: a hanging Redis is not asked again for what it still owes. */
  function readOnce(cursor: string): Promise<unknown> {
    const reading =
      readings.get(cursor) ??
      runStatistics(beside, '', '', [cursor, String(MAX_PAGE)]).finally(() => readings.delete(cursor))
    readings.set(cursor, reading)
    return withinTime(reading, GIVE_UP_AFTER_MS, timers.inBackground, lateReply)
  }

  return {
    id,
    setNote,
    async keepPoint(ring, { startMs, seconds, text }) {
      const place = (startMs / ring.stepMs) % ring.size
      const args = [place, startMs, seconds, text.slice(0, MAX_POINT_LENGTH), ring.size * ring.stepMs].map(
        String,
      )
      await call(scripts.history, [`${base}:history:${ring.name}`], args, CONNECT_WITHIN_MS)
    },
    async readRing(ring) {
      const args = ['', '', '', '', '']
      const asked = call(scripts.history, [`${base}:history:${ring.name}`], args, CONNECT_WITHIN_MS)
      const reply = await withinTime(asked, GIVE_UP_AFTER_MS, timers.inBackground, lateReply)
      const points = textsOf(reply, 2 * ring.size).flatMap((text, index) =>
        index % 2 === 0 ? [] : pointOf(text),
      )
      const newestMs = Math.max(0, ...points.map(({ startMs }) => startMs))
      return points
        .filter(({ startMs }) => startMs > newestMs - ring.size * ring.stepMs)
        .toSorted((one, other) => one.startMs - other.startMs)
    },
    async serverInfo() {
      if (info === undefined) return null
      return textOf(await withinTime(info(), GIVE_UP_AFTER_MS, timers.inBackground, lateReply))
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

const MAX_CHANGES = 500
const MAX_WORDS = 1_000
const KEEP_CHANGES_US = 90 * 86_400_000_000
const CHANGES_WITHIN_MS = 1_000
const ENTRY = /^(\d{1,15}) (.*)$/s

/** One bounded list beside the overrides. */
function changesIn({ prefix, tenant, call, clockUs, timers }: Beside): ChangeTrail {
  const key = `${prefix}:changes${tenant === '' ? '' : `:${encodeTenant(tenant)}`}`

  async function run(text: string): Promise<readonly Change[]> {
    const args = [clockUs(), text, String(MAX_CHANGES), String(KEEP_CHANGES_US)]
    const reply = call(scripts.changes, [key], args, CHANGES_WITHIN_MS)
    const found = await withinTime(reply, CHANGES_WITHIN_MS, timers.inBackground, lateReply)
    return textsOf(found, MAX_CHANGES)
      .flatMap(changeOf)
      .toSorted((one, other) => other.atMs - one.atMs)
  }

  return {
    add: ({ by, what, atMs }) => run(JSON.stringify({ by, what: what.slice(0, MAX_WORDS), atMs })),
    read: () => run(''),
  }
}

/** Skips entries that somebody else has written there. */
function changeOf(entry: string): Change[] {
  try {
    const [, notedAtMs, text = ''] = ENTRY.exec(entry) ?? []
    // A change that was written back says itself when it was made.
    const { by, what, atMs = Number(notedAtMs) } = JSON.parse(text) as Partial<Record<keyof Change, unknown>>
    if (typeof what !== 'string' || (by !== null && typeof by !== 'string')) return []
    return typeof atMs === 'number' && atMs >= 0 ? [{ atMs, by, what }] : []
  } catch {
    return []
  }
}
