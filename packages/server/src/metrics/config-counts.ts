/** Of the policy file: whether the last good one is in use instead of what is there now, and how often that happened. */
export interface ConfigCounts {
  readonly config: 'current' | 'stale'
  readonly refusedConfigs: number
}
