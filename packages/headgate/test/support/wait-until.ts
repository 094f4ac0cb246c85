import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Calls `probe` again and again until it returns true. A probe that throws counts as "not yet". Rejects when the
 * time is up, naming what it waited for and the last error.
 */
export async function waitUntil(
  what: string,
  probe: () => boolean | Promise<boolean>,
  { timeoutMs = 20_000, everyMs = 25 } = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < deadline) {
    try {
      if (await probe()) return
      last = undefined
    } catch (error) {
      last = error
    }
    await sleep(everyMs)
  }
  throw new Error(`Waited ${timeoutMs} ms in vain: ${what}`, { cause: last })
}
