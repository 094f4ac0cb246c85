import type { ConfigCounts } from '../../admin/probes.js'
import type { WriteLine } from '../../log/write-line.js'
import type { DescriptorConfig } from './descriptor-tree.js'
import { loadDescriptors, stampOf } from './load-descriptors.js'

/** The current limits, reloaded when their files change. */
export interface WatchedDescriptors {
  current(): DescriptorConfig
  /** Whether the files are in use as they are, and how often they could not be used. */
  state(): ConfigCounts
  close(): void
}

const LOOK_EVERY_MS = 1_000

/**
 * Polls the files once a second instead of watching: Kubernetes swaps a mounted folder as a whole, which watchers
 * do not notice. If files cannot be used, the last good ones stay in force. Rejects if the first ones cannot be
 * used.
 */
export async function watchDescriptors(path: string, log: WriteLine): Promise<WatchedDescriptors> {
  let current = await loadDescriptors(path)
  let stamp = await stampOf(path)
  let isStale = false
  let rejected = 0
  async function load(): Promise<void> {
    try {
      current = await loadDescriptors(path)
      isStale = false
      log(`${path}: reloaded`)
    } catch (error) {
      isStale = true
      rejected++
      const { message: cause } = error as Error
      const consequence = 'the last good limits stay'
      log(`${path}: NOT in use, ${consequence}: ${cause}`, { level: 'error', cause, consequence })
    }
  }

  const timer = setInterval(async () => {
    const now = await stampOf(path).catch(error => (error as Error).message)
    if (now !== stamp) {
      stamp = now
      await load()
    }
  }, LOOK_EVERY_MS)
  timer.unref()
  return {
    current: () => current,
    state: () => ({ config: isStale ? 'stale' : 'current', rejectedConfigs: rejected }),
    close: () => clearInterval(timer),
  }
}
