import type { BucketState } from '../../engine/token-bucket.js'
import { keepV8Shape } from '../../fast-path/keep-v8-shape.js'
import { NO_PAGE, RowView } from './row-columns.js'

/** A bucket: `missing` in the first half of the row, `lastRefillUs` in the second. */
export class BucketView extends RowView implements BucketState {
  get missing(): number {
    return this.page.doubles[this.index * 2] as number
  }
  set missing(value: number) {
    this.page.doubles[this.index * 2] = value
  }
  get lastRefillUs(): number {
    return this.page.doubles[this.index * 2 + 1] as number
  }
  set lastRefillUs(value: number) {
    this.page.doubles[this.index * 2 + 1] = value
  }
}

keepV8Shape(new BucketView(NO_PAGE, 0))
