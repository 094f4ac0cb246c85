/**
 * Requests and denials over time, in a bounded number of steps whatever the log's length: when the steps run out,
 * each becomes twice as long and neighbours are added up.
 */
export interface TimeStep {
  /** The Unix time in milliseconds at which it begins. */
  readonly atMs: number
  readonly requests: number
  readonly denied: number
}

const MAX_STEPS = 240
const FIRST_STEP_MS = 1_000

export class Timeline {
  private requests: number[] = []
  private denied: number[] = []
  private startMs = Number.NaN
  stepMs: number = FIRST_STEP_MS

  add(atMs: number, isDenied: boolean): void {
    if (Number.isNaN(this.startMs)) this.startMs = Math.floor(atMs / FIRST_STEP_MS) * FIRST_STEP_MS
    let step = Math.max(0, Math.floor((atMs - this.startMs) / this.stepMs))
    while (step >= MAX_STEPS) {
      this.coarsen()
      step = Math.floor((atMs - this.startMs) / this.stepMs)
    }
    this.requests[step] = (this.requests[step] ?? 0) + 1
    if (isDenied) this.denied[step] = (this.denied[step] ?? 0) + 1
  }

  /** Returns every step from the first request to the last, including those without requests. */
  steps(): readonly TimeStep[] {
    return Array.from({ length: this.requests.length }, (_, step) => ({
      atMs: this.startMs + step * this.stepMs,
      requests: this.requests[step] ?? 0,
      denied: this.denied[step] ?? 0,
    }))
  }

  private coarsen(): void {
    this.requests = pairs(this.requests)
    this.denied = pairs(this.denied)
    this.stepMs *= 2
  }
}

function pairs(counts: readonly number[]): number[] {
  return Array.from(
    { length: Math.ceil(counts.length / 2) },
    (_, pair) => (counts[pair * 2] ?? 0) + (counts[pair * 2 + 1] ?? 0),
  )
}
