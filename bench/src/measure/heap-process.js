/**
 * Runs in a process of its own: one contestant, many keys nobody has seen before, as many requests each as are asked for.
 * Counts the bytes that stay after a collection, with the keys themselves and with memory outside the heap.
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

// Code that compiles while keys are made is no part of a key.
await loop(
  contestant,
  Array.from({ length: 20_000 }, (_, index) => `warm:${index % 10}`),
)

const beforeBytes = await settledBytes()
const before = process.cpuUsage()
for (let round = 0; round < Number(requestsEach); round++) await loop(contestant, newKeys())
const seconds = cpuSecondsSince(before)
const bytes = (await settledBytes()) - beforeBytes
// Asked once more, so that it could not be collected before it was weighed.
await contestant.ask('warm:0')

process.send?.({ bytesPerKey: bytes / keyCount, keysPerSecond: keyCount / seconds }, () => process.exit())

/** Made on the way, as a server makes them of a request: only the contestant keeps them. */
function* newKeys() {
  for (let index = 0; index < keyCount; index++) yield `user:${index}`
}

/** `external` holds the memory of typed arrays too. */
async function settledBytes() {
  for (let pass = 0; pass < 3; pass++) {
    await setImmediate()
    globalThis.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
