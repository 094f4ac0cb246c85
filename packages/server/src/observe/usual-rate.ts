const HALF_LIFE_SECONDS = 900
/** Before this no usual rate is known. */
const READY_SECONDS = 300
/** Five times next to nothing is not unusual. */
const LEAST_PER_SECOND = 1

/** The usual rate of requests: a mean with a half-life of a quarter of an hour. */
export class UsualRate {
  private mean = 0
  private seconds = 0

  /** Returns how many times the usual rate this is; null if unknown. A spike is not learnt as usual. */
  times(perSecond: number): number | null {
    if (this.seconds < READY_SECONDS) return null
    return perSecond / Math.max(LEAST_PER_SECOND, this.mean)
  }

  learn(perSecond: number): void {
    this.seconds++
    // The plain mean at first, because decaying from zero would make everything a spike.
    const share = Math.max(1 / this.seconds, 1 - 0.5 ** (1 / HALF_LIFE_SECONDS))
    this.mean += (perSecond - this.mean) * share
  }
}
