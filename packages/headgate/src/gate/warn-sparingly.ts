import type { Clock } from '../clock.js'

const WARN_EVERY_US = 60_000_000

/** The same warning once a minute; another one at once. */
export function warnSparingly(warn: (message: string) => void, clock: Clock): (message: string) => void {
  const saidAtUs = new Map<string, number>()
  return message => {
    const nowUs = clock.nowUs()
    const last = saidAtUs.get(message)
    if (last !== undefined && nowUs - last < WARN_EVERY_US) return
    // Messages name fields, not subjects, so they are few; this is for those that carry an error's text.
    if (saidAtUs.size > 100) saidAtUs.clear()
    saidAtUs.set(message, nowUs)
    try {
      warn(message)
    } catch {
      // Who cannot be warned does not stop a request.
    }
  }
}
