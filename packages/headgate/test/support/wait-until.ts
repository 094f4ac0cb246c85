import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Asks `probe` again and again until it answers true. A probe that throws counts as "not yet".
 * Rejects when the time is up, and says what it waited for and what went wrong last.
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
