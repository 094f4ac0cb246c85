import type { Limit } from '../../algorithms/algorithm.js'
import type { Admission } from '../../engine/legacy-algorithm.js'
import type { KeptDenial } from '../../fast-path/kept-denials.js'
import type { IsOwnName, OneUnit } from '../../fast-path/single-limit-policy.js'
import { isNameOnly } from '../../subject/subject.js'
import type { Clock } from '../../time/clock.js'
import type { States } from './states.js'
import type { Table } from './table.js'

/** One unit of a limit, for keys that are the subjects themselves. */
export class OneUnitInMemory implements OneUnit {
  private readonly table: Table

  constructor(
    private readonly clock: Clock,
    private readonly states: States,
    name: string,
    private readonly limit: Limit,
    private readonly isOwnName: IsOwnName,
  ) {
    this.table = states.tableOf(name, limit)
  }

  take(subject: string, into: Admission): KeptDenial | boolean {
    const { table, limit } = this
    const nowUs = this.clock.nowUs()
    const row = table.rowOfSubject(subject)
    if (row !== undefined) return table.takeOne(row, limit, nowUs, into)
    return this.isKey(subject) && this.states.takeFirst(table, subject, limit, 1, nowUs, into)
  }

  private isKey(subject: string): boolean {
    return this.isOwnName(subject) && !isNameOnly(subject)
  }
}
