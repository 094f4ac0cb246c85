import type { CounterState } from '../../engine/sliding-window-counter.js'
import { keepV8Shape } from '../../fast-path/keep-v8-shape.js'
import { NO_PAGE, RowView } from './row-columns.js'

/** A counter: `startUs` in the first half of the row, `current` and `previous` in the quarters of the second. */
export class CounterView extends RowView implements CounterState {
  get startUs(): number {
    return this.page.doubles[this.index * 2] as number
  }
  set startUs(value: number) {
    this.page.doubles[this.index * 2] = value
  }
  get current(): number {
    return this.page.integers[this.index * 4 + 2] as number
  }
  set current(value: number) {
    this.page.integers[this.index * 4 + 2] = value
  }
  get previous(): number {
    return this.page.integers[this.index * 4 + 3] as number
  }
  set previous(value: number) {
    this.page.integers[this.index * 4 + 3] = value
  }
}

keepV8Shape(new CounterView(NO_PAGE, 0))
