// The scenarios of the report. Each returns rows: figure, value, target, and whether it was met.
import { clusterFailover, lostWrites, sentinelFailover } from './failover.mjs'
import { herd } from './herd.mjs'
import { eviction, outOfMemory } from './memory.mjs'
import { admitted, blackhole, frozen, frozenForLong, killed, sliced, slow } from './one-server.mjs'
import { resharding } from './resharding.mjs'
import { errorReplies, flushedScripts, lostReplies } from './scripts-and-replies.mjs'

export const scenarios = [
  ['R2', 'scripts forgotten every 5 ms', flushedScripts],
  ['R3', 'replies lost, then a reset', lostReplies],
  ['R4', 'frozen (SIGSTOP)', frozen],
  ['R5', 'frozen for long', frozenForLong],
  ['R6', 'killed, restarted empty', killed],
  ['R6', 'killed, restarted empty: one busy subject', admitted],
  ['R7', 'lost route (nothing arrives, nothing closes)', blackhole],
  ...[5, 20, 50, 200].map(latencyMs => [
    'R8',
    `slow: ${latencyMs} ms`,
    (library, options) => slow(library, latencyMs, options),
  ]),
  ['R8', 'one byte at a time', sliced],
  ['R9', 'cluster: a primary is lost', clusterFailover],
  ['R10', 'sentinels: the primary is lost', sentinelFailover],
  ['R11', 'a failover that loses 2 s of writes', lostWrites],
  ['R12', 'cluster: slots move', resharding],
  ['R13', 'error replies', errorReplies],
  ['R14', 'connections refused to a fleet', herd],
  ['R17', 'out of memory', outOfMemory],
  ['R17', 'eviction policy', eviction],
].map(([promise, fault, run]) => ({ promise, fault, run }))
