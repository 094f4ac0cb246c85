/** Response statuses that give back what a request was charged. */

/** An inclusive range: `304` alone, or `2xx` as 200 to 299. */
export interface Statuses {
  readonly from: number
  readonly to: number
}

/** Whether a status is in one of the ranges. */
export function includesStatus(list: readonly Statuses[], status: number): boolean {
  return list.some(({ from, to }) => status >= from && status <= to)
}

/** Returns the statuses in both lists: where either of two rules may apply, only what both give back comes back. */
export function commonStatuses(one: readonly Statuses[], other: readonly Statuses[]): readonly Statuses[] {
  return one.flatMap(range =>
    other
      .map(({ from, to }) => ({ from: Math.max(from, range.from), to: Math.min(to, range.to) }))
      .filter(({ from, to }) => from <= to),
  )
}

/** Formats a range as it is written in a file. */
export function statusesWords({ from, to }: Statuses): string {
  return from === to ? `${from}` : `${from / 100}xx`
}
