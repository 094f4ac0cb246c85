/** Something that an operator changed. */
export interface Change {
  /** Unix time in milliseconds on the store's clock. */
  readonly atMs: number
  /** The name of the token; null where no tokens are set and the machine is trusted. */
  readonly by: string | null
  /** In words, such as `reset user:42`. */
  readonly what: string
}

/** Remembers who changed what, for every process that shares the store: bounded, and kept when processes end. */
export interface ChangeTrail {
  /** Notes a change, and resolves to all there are. */
  add(change: Omit<Change, 'atMs'>): Promise<readonly Change[]>
  /** The newest first. */
  read(): Promise<readonly Change[]>
}
