import type { Denial } from '../observe/statistics/denials.js'
import type { Report } from '../observe/statistics/report.js'
import type { LimiterReading } from '../observe/statistics/statistics.js'

/** The latest counts of a process. */
export interface ProcessReport extends Omit<Report, 'denials'> {
  /** The name of the process among those that share the store. */
  readonly id: string
  /** The service it belongs to; empty if it names none. */
  readonly service: string
  readonly version: string
  /** The version of the policy file in force; null if there is none. */
  readonly configVersion: string | null
  /** Unix time in milliseconds. */
  readonly startedAtMs: number
  /** Reports are numbered, so that one is not counted twice. */
  readonly sequence: number
  /** What limits that do not bind would have done, by policy, since the process began. */
  readonly shadow: LimiterReading['shadow']
  readonly candidates: LimiterReading['candidates']
  /** Data a server leaves with it, such as the alerts it watches. */
  readonly note: unknown
}

/** The reports that the processes of a fleet have left. */
export interface FleetReading {
  /** Unix time in milliseconds on the store's clock. */
  readonly nowMs: number
  readonly processes: readonly ProcessReport[]
  /** The kept denials asked for, the oldest first. */
  readonly denials: readonly Denial[]
  /** What to ask for next, to get those that were kept later; there may be more of them already. */
  readonly cursor: string
}

/** A chart of bounded length: `size` points of `stepMs` each, the newest in the place of the oldest. */
export interface Ring {
  readonly name: string
  readonly stepMs: number
  readonly size: number
}

/** A point of a ring. */
export interface RingPoint {
  /** Unix time in milliseconds, a multiple of the ring's step. */
  readonly startMs: number
  /** How much of its time it covers: of several for the same time the one that covers most is kept. */
  readonly seconds: number
  /** What is drawn, as JSON. */
  readonly text: string
}

/** Where processes leave their counts, for all to see. Never asked by a request. */
export interface StatisticsStore {
  /** The name of this process there. */
  readonly id: string
  /** Reads the reports and, if a cursor is given, the denials after it: `''` begins with the oldest. */
  read(cursor?: string): Promise<FleetReading>
  /** Returns the INFO text of the server; null if it cannot be asked. */
  serverInfo(): Promise<string | null>
  keepPoint(ring: Ring, point: RingPoint): Promise<void>
  /** Returns the points that are not older than the ring is long, the oldest first. */
  readRing(ring: Ring): Promise<readonly RingPoint[]>
  /** Sets the data to leave with the next reports. */
  setNote(note: unknown): void
}
