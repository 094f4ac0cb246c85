/** The messages between the supervising process and its workers. */
import type { Control } from 'headgate'
import type { ArrivalSample, ProcessStatistics, Report } from 'headgate/internal'
import type { AnswerReading } from '../metrics/gateway-answers.js'
import type { ProcessReading } from '../metrics/process-counts.js'
import type { TokenReading } from '../metrics/token-counts.js'
import type { UpstreamReading } from '../metrics/upstream-counts.js'

/** Where a worker listens: the same for all of them. */
export interface Listening {
  readonly gatewayUrl: string
  readonly grpcAddress: string | null
  readonly upstreamUrl: string
}

/** Counts of a worker since it began. */
export interface WorkerCounts {
  readonly statistics: ProcessStatistics
  readonly upstreams: readonly UpstreamReading[]
  readonly answers: readonly AnswerReading[]
  readonly tokens: readonly TokenReading[]
  readonly process: ProcessReading
}

export type FromWorker =
  | ({ readonly type: 'ready' } & Listening)
  /** It finishes requests in flight, and then ends. */
  | { readonly type: 'draining' }
  | { readonly type: 'second'; readonly report: Report; readonly counts: WorkerCounts }
  | { readonly type: 'last'; readonly counts: WorkerCounts }
  | { readonly type: 'arrivals'; readonly sample: ArrivalSample }

export type ToWorker =
  | { readonly type: 'stop' }
  | { readonly type: 'arrivals' }
  /** The switches, while the store cannot be reached. */
  | { readonly type: 'control'; readonly change: Partial<Control> }
