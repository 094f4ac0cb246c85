/** Keys that are not the subject itself begin with a colon, and no subject does. */
const INNER = ':'.charCodeAt(0)

/** The rows of keys. The row of a key that was deleted is given to the next new one. */
export class RowKeys {
  /** Subjects, and apart from them keys of ours: what is not a subject must not be found as one. */
  private readonly rows = new Map<string, number>()
  private readonly innerRows = new Map<string, number>()
  private readonly keys: (string | undefined)[] = []
  private readonly free: number[] = []

  get size(): number {
    return this.rows.size + this.innerRows.size
  }

  /** All rows, those without a key included. */
  get rowCount(): number {
    return this.keys.length
  }

  rowOf(key: string): number | undefined {
    return this.rowsFor(key).get(key)
  }

  /** Returns the row of a subject that is its own key. A text written to look like one of our keys finds nothing. */
  rowOfSubject(subject: string): number | undefined {
    return this.rows.get(subject)
  }

  keyAt(row: number): string | undefined {
    return this.keys[row]
  }

  /** Gives a new key a row. */
  add(key: string): number {
    const row = this.free.pop() ?? this.keys.length
    this.keys[row] = key
    this.rowsFor(key).set(key, row)
    return row
  }

  delete(row: number): void {
    const key = this.keys[row] as string
    this.rowsFor(key).delete(key)
    this.keys[row] = undefined
    this.free.push(row)
  }

  private rowsFor(key: string): Map<string, number> {
    return key.charCodeAt(0) === INNER ? this.innerRows : this.rows
  }
}
