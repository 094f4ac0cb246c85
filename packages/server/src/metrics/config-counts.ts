/** Counts rejected policy files, and says whether the last good one is in use instead of the present one. */
export interface ConfigCounts {
  readonly config: 'current' | 'stale'
  readonly refusedConfigs: number
}
