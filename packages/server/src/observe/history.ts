/**
 * What the charts show: the last quarter of an hour second by second, six hours and seven days in longer steps. The longer
 * ones are rings of bounded size, kept in Redis for the fleet and here for as long as this server runs.
 */
import { addLatencies, latencyQuantileMs, type Ring, type StatisticsStore } from 'headgate/internal'
import { type Second, sumOf } from './second.js'
import { errorsOf } from './store-stats.js'

/** A step of a chart: counts per second, over the step. */
export interface Point {
  /** The Unix time in milliseconds at which it ends, or begins if it is of a ring. */
  readonly atMs: number
  readonly allowed: number
  readonly denied: number
  readonly shadowDenied: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly storeErrors: number
  readonly storeCalls: number
}

export const RANGES = ['15m', '6h', '7d'] as const
export type Range = (typeof RANGES)[number]

export interface ShownHistory {
  readonly stepMs: number
  readonly points: readonly Point[]
}

export const MAX_POINTS = 900
const SECOND_MS = 1_000
const RINGS: Readonly<Record<Exclude<Range, '15m'>, Ring>> = {
  '6h': { name: '6h', stepMs: 30_000, size: 720 },
  '7d': { name: '7d', stepMs: 900_000, size: 672 },
}
/** Redis is not asked more often than this, however many pages are open. */
const READ_EVERY_MS = 10_000

export class History {
  private kept: Point[] = []
  private readonly rings: Readonly<Record<string, LocalRing>>

  /** `fleet` is null if there is only this process. */
  constructor(
    private readonly fleet: Pick<StatisticsStore, 'keepPoint' | 'readRing'> | null,
    private readonly unixMs: () => number,
  ) {
    this.rings = Object.fromEntries(
      Object.values(RINGS).map(ring => [ring.name, new LocalRing(ring, (...point) => this.keep(...point))]),
    )
  }

  /** `isOfFleet`: whether it has the counts of all processes, so that others may read it. */
  add(second: Second, isOfFleet: boolean): void {
    this.kept.push(pointOf([second], 1, second.atMs))
    if (this.kept.length > MAX_POINTS) this.kept.shift()
    for (const ring of Object.values(this.rings)) ring.add(second, isOfFleet)
  }

  /** The last seconds one by one. */
  last(seconds: number): readonly Point[] {
    return this.kept.slice(-seconds)
  }

  async read(range: Range): Promise<ShownHistory> {
    if (range === '15m') return { stepMs: SECOND_MS, points: this.kept }
    const ring = this.rings[range] as LocalRing
    if (this.fleet !== null && this.unixMs() - ring.readAtMs > READ_EVERY_MS) {
      ring.readAtMs = this.unixMs()
      const points = await this.fleet.readRing(RINGS[range]).catch(() => [])
      ring.learn(points.flatMap(({ startMs, text }) => parsed(startMs, text)))
    }
    return { stepMs: RINGS[range].stepMs, points: ring.points(this.unixMs()) }
  }

  private keep(ring: Ring, point: Point, seconds: number): void {
    const { atMs: startMs, ...values } = point
    const text = JSON.stringify(Object.values(values).map(value => (value === null ? null : rounded(value))))
    // A point that could not be kept is missing for the others, and drawn by this server all the same.
    this.fleet?.keepPoint(ring, { startMs, seconds, text }).catch(() => {})
  }
}

class LocalRing {
  readAtMs = Number.NEGATIVE_INFINITY
  private readonly byStart = new Map<number, Point>()
  private seconds: Second[] = []
  private isOfFleet = true

  constructor(
    private readonly ring: Ring,
    private readonly onPoint: (ring: Ring, point: Point, seconds: number) => void,
  ) {}

  add(second: Second, isOfFleet: boolean): void {
    const startMs = this.startOf(second.atMs)
    const [first] = this.seconds
    if (first !== undefined && this.startOf(first.atMs) < startMs) this.finish()
    this.seconds.push(compact(second))
    this.isOfFleet &&= isOfFleet
  }

  /** Takes what others have kept; what this server has counted itself stays. */
  learn(points: readonly Point[]): void {
    for (const point of points) if (!this.byStart.has(point.atMs)) this.set(point)
  }

  points(nowMs: number): readonly Point[] {
    const sinceMs = nowMs - this.ring.size * this.ring.stepMs
    const [first] = this.seconds
    const running = first === undefined ? [] : [this.pointNow(first)]
    return [...this.byStart.values(), ...running]
      .filter(({ atMs }) => atMs > sinceMs)
      .toSorted((one, other) => one.atMs - other.atMs)
  }

  private finish(): void {
    const point = this.pointNow(this.seconds[0] as Second)
    this.set(point)
    if (this.isOfFleet) this.onPoint(this.ring, point, this.seconds.length)
    this.seconds = []
    this.isOfFleet = true
  }

  private pointNow(first: Second): Point {
    return pointOf(this.seconds, this.seconds.length, this.startOf(first.atMs))
  }

  private set(point: Point): void {
    this.byStart.set(point.atMs, point)
    if (this.byStart.size > this.ring.size) this.byStart.delete(Math.min(...this.byStart.keys()))
  }

  private startOf(atMs: number): number {
    return Math.floor(atMs / this.ring.stepMs) * this.ring.stepMs
  }
}

/** A second with its rows added up: a quarter of an hour of them is kept until its point is finished. */
function compact(second: Second): Second {
  const { allowed, denied, nearLimit, latency } = sumOf([second])
  const labels = { policy: '', tier: null, rule: null, source: 'memory' as const }
  const row = { ...labels, allowed, denied, nearLimit, latency: { counts: latency, sumUs: 0 } }
  const shadowCallers = { deniedCallers: [], unlistedAtMost: 0, sampledOneIn: 1 }
  return { ...second, decisions: [row], denials: [], deniedCallers: [], shadowCallers }
}

function pointOf(seconds: readonly Second[], count: number, atMs: number): Point {
  const latency: number[] = []
  let [allowed, denied, shadowDenied, storeErrors, storeCalls] = [0, 0, 0, 0, 0]
  for (const second of seconds) {
    const sum = sumOf([second])
    allowed += sum.allowed
    denied += sum.denied
    shadowDenied += second.shadowDenied
    storeErrors += errorsOf(second.store.failures)
    storeCalls += second.store.calls
    addLatencies(latency, sum.latency)
  }
  return {
    atMs,
    allowed: allowed / count,
    denied: denied / count,
    shadowDenied: shadowDenied / count,
    p50Ms: latencyQuantileMs(latency, 0.5),
    p99Ms: latencyQuantileMs(latency, 0.99),
    storeErrors: storeErrors / count,
    storeCalls: storeCalls / count,
  }
}

/** Skips what another version or somebody else has written. */
function parsed(atMs: number, text: string): Point[] {
  try {
    const values: unknown = JSON.parse(text)
    if (!Array.isArray(values) || values.length < 7) return []
    const isSound = values.every(
      (value, index) => Number.isFinite(value) || (value === null && (index === 3 || index === 4)),
    )
    if (!isSound) return []
    const [allowed, denied, shadowDenied, p50Ms, p99Ms, storeErrors, storeCalls] = values
    return [{ atMs, allowed, denied, shadowDenied, p50Ms, p99Ms, storeErrors, storeCalls }]
  } catch {
    return []
  }
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
