import type { WriteLine } from '../../log/write-line.js'
import type { DescriptorConfig } from './descriptor-tree.js'
import { loadDescriptors, stampOf } from './load-descriptors.js'

/** The current limits, reloaded when their files change. */
export interface WatchedDescriptors {
  current(): DescriptorConfig
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
  async function load(): Promise<void> {
    try {
      current = await loadDescriptors(path)
      log(`${path}: in use as changed`)
    } catch (error) {
      log(`${path}: NOT in use, the last good limits stay: ${(error as Error).message}`)
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
  return { current: () => current, close: () => clearInterval(timer) }
}
