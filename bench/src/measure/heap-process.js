/**
 * Asks one contestant, in its own process, for many new keys, a given number of times each. Counts the bytes that
 * stay after a collection, including the keys themselves and memory outside the heap.
 */
import { setImmediate } from 'node:timers/promises'
import { contestantNamed } from '../contestants/contestants.js'
import { cpuSecondsSince } from './cpu.js'
import { askAtOnce, askInTurn } from './loops.js'

/** @typedef {{ bytesPerKey: number, keysPerSecond: number }} Heap */

const [name, keys, requestsEach] = process.argv.slice(2)
const entry = contestantNamed(String(name))
const keyCount = Number(keys)
const contestant = await entry.create({ limit: 1_000_000, windowSeconds: 3600 })
const loop = entry.shape === 'sync' ? askAtOnce : askInTurn

// Warms up first, so that compiled code does not count as part of a key.
await loop(
  contestant,
  Array.from({ length: 20_000 }, (_, index) => `warm:${index % 10}`),
)

const beforeBytes = await settledBytes()
const before = process.cpuUsage()
for (let round = 0; round < Number(requestsEach); round++) await loop(contestant, newKeys())
const seconds = cpuSecondsSince(before)
const bytes = (await settledBytes()) - beforeBytes
// Asks once more, so that the contestant could not be collected before it was measured.
await contestant.ask('warm:0')

process.send?.({ bytesPerKey: bytes / keyCount, keysPerSecond: keyCount / seconds }, () => process.exit())

/** Builds each key when it is needed, as a server does from a request: only the contestant keeps it. */
function* newKeys() {
  for (let index = 0; index < keyCount; index++) yield `user:${index}`
}

/** `external` includes the memory of typed arrays. */
async function settledBytes() {
  for (let pass = 0; pass < 3; pass++) {
    await setImmediate()
    globalThis.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
