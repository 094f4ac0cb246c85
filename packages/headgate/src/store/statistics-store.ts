import type { Report } from '../observe/statistics/report.js'
import type { Violation } from '../observe/statistics/violations.js'

/** A process that counts, and what it counted last. */
export interface ProcessReport extends Omit<Report, 'violations'> {
  /** The name of the process among those that share the store. */
  readonly id: string
  /** The program it is one of; empty where it says nothing. */
  readonly service: string
  readonly version: string
  /** The version of the policy file in force; null where there is none. */
  readonly configVersion: string | null
  /** Unix time in milliseconds. */
  readonly startedAtMs: number
  /** Reports are numbered: one that was seen before is not counted again. */
  readonly sequence: number
  /** Data a server leaves beside it, such as the alerts it watches. */
  readonly note: unknown
}

/** The reports that the processes of a fleet have left. */
export interface FleetReading {
  /** Unix time in milliseconds on the store's clock. */
  readonly nowMs: number
  readonly processes: readonly ProcessReport[]
  /** Denials that were written down, the newest first. */
  readonly violations: readonly Violation[]
}

/** Where processes leave what they have counted, for all to see. Never asked by a request. */
export interface StatisticsStore {
  /** The name of this process there. */
  readonly id: string
  read(): Promise<FleetReading>
  /** The INFO text of the server; null where it cannot be asked for. */
  serverInfo(): Promise<string | null>
  /** Sets the data to leave beside the next reports. */
  setNote(note: unknown): void
}
