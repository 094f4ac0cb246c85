/** A change made by an operator. */
export interface Change {
  /** Unix time in milliseconds on the store's clock. */
  readonly atMs: number
  /** The name of the token; null if no tokens are set and the machine is trusted. */
  readonly by: string | null
  /** In words, such as `reset user:42`. */
  readonly what: string
}

/** Records who changed what, for every process that shares the store: bounded, and kept when processes end. */
export interface ChangeTrail {
  /** Records a change, of now unless it says when, and resolves to all there are, the newest first. */
  add(change: Omit<Change, 'atMs'> & Partial<Change>): Promise<readonly Change[]>
  /** The newest first. */
  read(): Promise<readonly Change[]>
}
