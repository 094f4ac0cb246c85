/** Statuses of responses that give back what their request took. */

/** From one status to another, both included: `304` alone, `2xx` as 200 to 299. */
export interface Statuses {
  readonly from: number
  readonly to: number
}

export function includesStatus(list: readonly Statuses[], status: number): boolean {
  return list.some(({ from, to }) => status >= from && status <= to)
}

/** The statuses in both lists: where we do not know which of two rules holds, only what both give back comes back. */
export function commonStatuses(one: readonly Statuses[], other: readonly Statuses[]): readonly Statuses[] {
  return one.flatMap(range =>
    other
      .map(({ from, to }) => ({ from: Math.max(from, range.from), to: Math.min(to, range.to) }))
      .filter(({ from, to }) => from <= to),
  )
}

/** As it is written in a file. */
export function statusesWords({ from, to }: Statuses): string {
  return from === to ? `${from}` : `${from / 100}xx`
}
