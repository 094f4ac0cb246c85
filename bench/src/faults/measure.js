/** Sends requests at a steady rate during a fault, without waiting for earlier answers, and records their outcomes. */
import { setTimeout as sleep } from 'node:timers/promises'

/** @typedef {import('./contestants.js').Contestant} Contestant */
/** @typedef {{ sentMs: number, doneMs: number, admitted: boolean, byRedis: boolean, failed: boolean }} Answer */
/** @typedef {{ cause(): unknown, lift(): unknown }} Fault */

export const RULE = { limit: 50, windowSeconds: 60 }
export const SUBJECTS = 50
const RPS = 1_000
const WARM_UP_MS = 1_000
export const FAULT_MS = 5_000
const AFTER_MS = 4_000

/**
 * @typedef {object} Figures
 * @property {number} p99Ms Latency of the requests sent during the fault.
 * @property {number} longestMs
 * @property {number} errors Requests that got an error or no answer instead of a decision.
 * @property {number} admitted
 * @property {number | null} backMs Time until Redis decided a request sent after the fault.
 */

/** @param {Contestant} contestant @param {Fault} fault @returns {Promise<Figures>} */
export async function throughFault(contestant, fault) {
  /** @type {Answer[]} */
  const answers = []
  let sent = 0
  let running = true

  /** @param {string} subject */
  async function ask(subject) {
    const answer = { sentMs: performance.now(), doneMs: Number.POSITIVE_INFINITY, failed: true }
    const settled = { ...answer, admitted: false, byRedis: false }
    answers.push(settled)
    try {
      Object.assign(settled, await contestant.check(subject), { failed: false })
    } catch {
      // The request counts as failed.
    }
    settled.doneMs = performance.now()
  }

  const startMs = performance.now()
  const load = (async () => {
    while (running) {
      const due = ((performance.now() - startMs) / 1000) * RPS
      for (; sent < due; sent++) void ask(`caller-${sent % SUBJECTS}`)
      await sleep(1)
    }
  })()
  await sleep(WARM_UP_MS)
  const causedMs = performance.now()
  await fault.cause()
  await sleep(FAULT_MS)
  const liftingMs = performance.now()
  await fault.lift()
  const liftedMs = performance.now()
  await sleep(AFTER_MS)
  running = false
  await load
  await sleep(500)
  const endMs = performance.now()
  const took = answers
    .filter(({ sentMs }) => sentMs >= causedMs && sentMs < liftingMs)
    .map(({ sentMs, doneMs }) => Math.min(doneMs, endMs) - sentMs)
    .sort((a, b) => a - b)
  const back = answers.find(({ sentMs, byRedis, failed }) => sentMs >= liftedMs && byRedis && !failed)
  return {
    p99Ms: took[Math.ceil(took.length * 0.99) - 1] ?? Number.NaN,
    longestMs: took.at(-1) ?? Number.NaN,
    errors: answers.filter(({ failed }) => failed).length,
    admitted: answers.filter(({ admitted }) => admitted).length,
    backMs: back === undefined ? null : back.doneMs - liftedMs,
  }
}
