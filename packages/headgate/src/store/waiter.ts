/** Waits for something asynchronous without a promise. */
export interface Waiter<T> {
  /** One of the two is called, once. */
  answered(value: T): void
  /** Must not throw, because nobody else would settle what waits. */
  failed(error: unknown): void
}

/**
 * Passes a value to a waiter. A fault of the waiter itself is a failure like any other, because somebody still
 * waits behind it.
 */
export function settle<T>(waiter: Waiter<T>, value: T): void {
  try {
    waiter.answered(value)
  } catch (error) {
    waiter.failed(error)
  }
}

/** Passes the outcome of a promise to a waiter. */
export function settleWith<T>(waiter: Waiter<T>, work: Promise<T>): void {
  work.then(
    value => settle(waiter, value),
    error => waiter.failed(error),
  )
}

/** A promise that is created when somebody has to wait for it. */
export class LazyPromise<T> {
  private made: Promise<T> | null = null
  private settle: ((value: T) => void) | null = null
  private refuse: ((error: unknown) => void) | null = null

  get promise(): Promise<T> {
    this.made ??= new Promise((resolve, reject) => {
      this.settle = resolve
      this.refuse = reject
    })
    return this.made
  }

  protected resolve(value: T): void {
    if (this.settle === null) this.made ??= Promise.resolve(value)
    else this.settle(value)
  }

  protected reject(error: unknown): void {
    if (this.refuse === null) this.made ??= Promise.reject(error)
    else this.refuse(error)
  }
}
