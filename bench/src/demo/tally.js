/** Counts requests and their outcomes: in all, while Redis was frozen, and just now. */
import { quantile } from '../harness/stats.js'

/** @typedef {import('../harness/send.js').Sent} Sent */
/** @typedef {{ asked: number, allowed: number, denied: number, failed: number }} Counts */
/** @typedef {{ beganMs: number, endedMs: number }} Freeze Since the start of the traffic. */

const JUST_NOW_MS = 1_000

/** @returns {Counts} */
const nothing = () => ({ asked: 0, allowed: 0, denied: 0, failed: 0 })

export class Tally {
  /** @type {Sent[]} */
  #all = []
  /** By the client's index in the cast. */
  #clients

  /** @param {number} clients */
  constructor(clients) {
    this.#clients = clients
  }

  /** @param {Sent} sent */
  add(sent) {
    this.#all.push(sent)
  }

  /** Returns the answered requests that were due in a time. @param {number} fromMs @param {number} toMs */
  between(fromMs, toMs) {
    return this.#summary(this.#all.filter(({ dueMs }) => dueMs >= fromMs && dueMs < toMs))
  }

  /** @param {number} nowMs */
  justNow(nowMs) {
    // Answers come nearly in order, so looking at the tail is enough.
    return this.#summary(this.#all.slice(-2_000).filter(({ dueMs }) => dueMs >= nowMs - JUST_NOW_MS))
  }

  all() {
    return this.#summary(this.#all)
  }

  /** Returns the answers given while Redis was frozen to requests due in that time. @param {Freeze} freeze */
  answeredInside({ beganMs, endedMs }) {
    return this.#all.filter(
      ({ dueMs, latencyMs, answer }) =>
        answer.status !== 0 && dueMs >= beganMs && dueMs + latencyMs < endedMs,
    ).length
  }

  /** @param {readonly Sent[]} list */
  #summary(list) {
    const clients = Array.from({ length: this.#clients }, nothing)
    const total = nothing()
    for (const { sender, answer } of list) {
      const counts = clients[sender]
      if (counts !== undefined) count(counts, answer.status)
      count(total, answer.status)
    }
    const timesMs = list.map(({ latencyMs }) => latencyMs).sort((one, other) => one - other)
    const at = (/** @type {number} */ share) => (timesMs.length === 0 ? 0 : quantile(timesMs, share))
    return { clients, total, p50Ms: at(0.5), p99Ms: at(0.99), slowestMs: at(1) }
  }
}

/** @typedef {ReturnType<Tally['all']>} Summary */

/** @param {Counts} counts @param {number} status */
function count(counts, status) {
  counts.asked++
  if (status === 200) counts.allowed++
  else if (status === 429) counts.denied++
  else counts.failed++
}
