/**
 * Measures Headgate beside other limiters on this machine, and writes docs/reference/benchmarks.md.
 *
 *   npm run bench -- instructions            counts instructions of redis-server a check; a minute, needs valgrind
 *   npm run bench -- instructions --strict   fails if a script costs more than 1.15 × its committed ratio to an empty one
 *
 *   --quick       a rough run that writes nothing
 *   --only a,b    some of a bench's rows; writes nothing
 */
import { parseArgs } from 'node:util'
import { helpIfAsked } from './harness/help.js'
import { writeResults, writeSection } from './harness/page.js'
import {
  countInstructions,
  dearerThanCommitted,
  instructionsResults,
  instructionsTable,
} from './instructions.js'

helpIfAsked(import.meta.url)

const { values } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
})
const only = values.only?.split(',')
const tell = (/** @type {string} */ line) => void process.stderr.write(`${line}\n`)

try {
  const counts = await countInstructions({ quick: values.quick, only, tell })
  process.stdout.write(`${instructionsTable(counts)}\n`)
  if (values.strict) {
    const dearer = dearerThanCommitted(counts)
    for (const line of dearer) tell(line)
    if (dearer.length > 0) process.exitCode = 1
  } else if (!values.quick && only === undefined) {
    writeSection('instructions', instructionsTable(counts))
    writeResults('instructions', instructionsResults(counts))
  }
} catch (error) {
  tell(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
