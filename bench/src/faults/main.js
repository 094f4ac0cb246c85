/**
 * Plays the same Redis faults to headgate and its peers, each with its own protection on.
 *
 *   npm run bench:faults               about three minutes; writes docs/reference/faults-peers.md and its chart
 *   npm run bench:faults -- --only=x   the faults whose name contains x; writes nothing
 */
import { readFile, writeFile } from 'node:fs/promises'
import { register } from 'node:module'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { redisVersion } from '../redis/server.js'
import { formatTable } from '../report/table.js'
import { waitChart } from './chart.js'
import { CONTESTANTS } from './contestants.js'
import { FAULT_MS, RULE, SUBJECTS, throughFault } from './measure.js'

helpIfAsked(import.meta.url)

// The tests' servers and proxy are written in TypeScript.
register('../../../packages/headgate/test/faults/ts-loader.mjs', import.meta.url)
const { startRedis } = await import('../../../packages/headgate/test/support/redis-process.ts')
const { startTcpProxy } = await import('../../../packages/headgate/test/support/tcp-proxy.ts')

const PAGE = new URL('../../../docs/reference/faults-peers.md', import.meta.url)
const CHART = new URL('../../../docs/assets/faults.svg', import.meta.url)
const BEGIN = '<!-- bench:faults:begin (written by `npm run bench:faults`) -->'
const END = '<!-- bench:faults:end -->'

/** @typedef {Awaited<ReturnType<typeof startRedis>>} Server */
/** @typedef {Awaited<ReturnType<typeof startTcpProxy>>} Proxy */

/** @type {Readonly<Record<string, (server: Server, proxy: Proxy, replaced: Server[]) => import('./measure.js').Fault>>} */
const FAULTS = {
  'frozen (SIGSTOP)': server => ({
    cause: () => server.kill('SIGSTOP'),
    lift: () => server.kill('SIGCONT'),
  }),
  'killed, restarted empty': (server, _proxy, replaced) => ({
    cause: () => server.kill('SIGKILL'),
    async lift() {
      await server.exited
      replaced.push(await startRedis({ port: server.port }))
    },
  }),
  'half-open (nothing arrives, nothing closes)': (_server, proxy) => ({
    cause: () => proxy.blackhole(),
    lift: () => proxy.forward(),
  }),
  'slow: 200 ms': (_server, proxy) => ({
    cause: () => proxy.delay({ ms: 100 }),
    lift: () => proxy.forward(),
  }),
}

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })
let unhandled = 0
process.on('unhandledRejection', () => {
  unhandled++
})
console.warn = () => {}
console.error = () => {}

/** @type {string[][]} */
const rows = []
for (const [faultName, faultOf] of Object.entries(FAULTS)) {
  if (options.only !== undefined && !faultName.includes(options.only)) continue
  for (const [name, open] of Object.entries(CONTESTANTS)) {
    process.stderr.write(`${faultName}: ${name} …\n`)
    const server = await startRedis()
    const proxy = await startTcpProxy({ port: server.port })
    const contestant = await open(proxy.port, RULE)
    /** @type {Server[]} */
    const replaced = []
    unhandled = 0
    const figures = await throughFault(contestant, faultOf(server, proxy, replaced))
    await contestant.close()
    await proxy.close()
    for (const each of [...replaced, server]) await each.stop()
    const { p99Ms, longestMs, errors, admitted, backMs } = figures
    rows.push([
      faultName,
      name,
      ms(p99Ms),
      ms(longestMs),
      String(errors + unhandled),
      String(admitted),
      backMs === null ? 'not in 4 s' : ms(backMs),
    ])
  }
}

const table = formatTable(
  ['fault', 'limiter', 'p99', 'longest', 'errors', `admitted, of ${RULE.limit * SUBJECTS}`, 'back on Redis'],
  rows,
)
console.log(table)
if (options.only === undefined) await writePage()
process.exit(0)

async function writePage() {
  const page = await readFile(PAGE, 'utf8')
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from)
    throw new Error(`docs/reference/faults-peers.md has lost its markers: ${BEGIN}, ${END}`)
  const setting = `Node ${process.versions.node}, Redis ${redisVersion()}, ${availableParallelism()} cores, ioredis for all, each fault for ${FAULT_MS / 1000} s.`
  await writeFile(
    PAGE,
    `${page.slice(0, from + BEGIN.length)}\n\n${setting}\n\n${table}\n\n${page.slice(to)}`,
  )
  await writeFile(CHART, waitChart(rows))
}

/** @param {number} value */
function ms(value) {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`
}
