const HALF_LIFE_SECONDS = 900
/** Below it no usual rate is known yet. */
const READY_SECONDS = 300
/** Five times of next to nothing is nothing unusual. */
const LEAST_PER_SECOND = 1

/** The rate of requests that is usual: a mean in which what was a quarter of an hour ago counts half. */
export class UsualRate {
  private mean = 0
  private seconds = 0

  /** How many times the usual rate this is; null while that is not known. A spike is not learnt as usual. */
  times(perSecond: number): number | null {
    if (this.seconds < READY_SECONDS) return null
    return perSecond / Math.max(LEAST_PER_SECOND, this.mean)
  }

  learn(perSecond: number): void {
    this.seconds++
    // In the beginning the plain mean: half a life of nothing would make everything a spike.
    const share = Math.max(1 / this.seconds, 1 - 0.5 ** (1 / HALF_LIFE_SECONDS))
    this.mean += (perSecond - this.mean) * share
  }
}
