/**
 * Measures what a decision costs over the wire: the decision API and forward-auth next to a bare node:http server, and Envoy's
 * ShouldRateLimit next to a grpc-js handler that decodes and answers without deciding. Then 2,000 questions of four
 * descriptors a second on Redis, healthy and frozen.
 *
 *   npm run bench:services              about a minute; writes bench/results and the docs
 *   npm run bench:services -- --quick   some seconds; rough, writes nothing
 *   npm run bench:services -- --strict  exit code 1 if a target was missed
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { latenciesOf } from '../redis/latencies.js'
import { redisVersion, startServer } from '../redis/server.js'
import { ratioOf, spreadOf } from '../report/statistics.js'
import { writeResults } from '../report/write.js'
import { grpcCaller, loadGrpc, loadHttp, openLoop, rateLimitRequest } from './loads.js'
import { toMarkdown } from './markdown.js'

helpIfAsked(import.meta.url)

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, strict: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 2 : 7
const SLICE = { callers: 32, seconds: options.quick ? 0.4 : 0.8 }
const OPEN = { perSecond: 2_000, seconds: options.quick ? 1 : 5 }
const load = loadavg()[0] ?? 0

const one = Array.from({ length: 100 }, (_, user) => rateLimitRequest(['a'], String(user)))
const four = Array.from({ length: 100 }, (_, user) => rateLimitRequest(['a', 'b', 'c', 'd'], String(user)))
const json = JSON.stringify({ subject: 'user:42', method: 'GET', path: '/things/7' })
const check = `POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
const forward =
  'GET /v1/forward-auth HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /things/7\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n'

/** @typedef {{ bareHttp: number, api: number, emptyGrpc: number, envoy: number }} Ports */
/** @type {{ name: string, beside: string | null, run: (ports: Ports) => Promise<import('./loads.js').Load> }[]} */
const CONTESTANTS = [
  { name: 'bare node:http, POST', beside: null, run: ({ bareHttp }) => loadHttp(bareHttp, check, SLICE) },
  {
    name: 'POST /v1/check by the rules',
    beside: 'bare node:http, POST',
    run: ({ api }) => loadHttp(api, check, SLICE),
  },
  { name: 'bare node:http, GET', beside: null, run: ({ bareHttp }) => loadHttp(bareHttp, forward, SLICE) },
  {
    name: 'GET /v1/forward-auth',
    beside: 'bare node:http, GET',
    run: ({ api }) => loadHttp(api, forward, SLICE),
  },
  { name: 'empty grpc-js handler', beside: null, run: ({ emptyGrpc }) => loadGrpc(emptyGrpc, one, SLICE) },
  {
    name: 'ShouldRateLimit, 1 descriptor',
    beside: 'empty grpc-js handler',
    run: ({ envoy }) => loadGrpc(envoy, one, SLICE),
  },
  {
    name: 'empty grpc-js handler, 4 descriptors',
    beside: null,
    run: ({ emptyGrpc }) => loadGrpc(emptyGrpc, four, SLICE),
  },
  {
    name: 'ShouldRateLimit, 4 descriptors',
    beside: 'empty grpc-js handler, 4 descriptors',
    run: ({ envoy }) => loadGrpc(envoy, four, SLICE),
  },
]

/** @param {string[]} args */
async function startServices(...args) {
  const child = fork(fileURLToPath(new URL('./server-process.js', import.meta.url)), args)
  const [{ ports }] = /** @type {[{ ports: Ports }]} */ (await once(child, 'message'))
  const cpuUs = async () => {
    child.send('cpu')
    const [{ cpu }] = /** @type {[{ cpu: NodeJS.CpuUsage }]} */ (await once(child, 'message'))
    return cpu.user + cpu.system
  }
  return { ports, cpuUs, stop: () => child.kill('SIGKILL') }
}

/** @type {Map<string, { perSecond: number[], cpuUs: number[], timesMs: number[] }>} */
const measured = new Map(CONTESTANTS.map(({ name }) => [name, { perSecond: [], cpuUs: [], timesMs: [] }]))
const services = await startServices()
try {
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, run } of CONTESTANTS) {
      const before = await services.cpuUs()
      const { requests, timesMs } = await run(services.ports)
      const usedUs = (await services.cpuUs()) - before
      const found = measured.get(name)
      // The compiler is still at work during the first round.
      if (round === 0 || found === undefined) continue
      found.perSecond.push(requests / SLICE.seconds)
      found.cpuUs.push(usedUs / requests)
      found.timesMs.push(...timesMs)
    }
    process.stderr.write(`round ${round} of ${ROUNDS}\n`)
  }
} finally {
  services.stop()
}

const rows = CONTESTANTS.map(({ name, beside }) => {
  const { perSecond, cpuUs, timesMs } = /** @type {NonNullable<ReturnType<typeof measured.get>>} */ (
    measured.get(name)
  )
  const base = beside === null ? undefined : measured.get(beside)
  return {
    name,
    perSecond: Math.round(spreadOf(perSecond).median),
    cpuUs: Math.round(spreadOf(cpuUs).median * 10) / 10,
    p99Ms: latenciesOf(timesMs).p99Ms,
    ratio: base === undefined ? null : ratioOf(perSecond, base.perSecond).median,
  }
})

/** R29: Envoy waits 20 ms for its answer. */
async function onRedis() {
  const redis = await startServer()
  const onIt = await startServices(redis.url)
  const { ask, close } = grpcCaller(onIt.ports.envoy)
  try {
    await openLoop(ask, four, { ...OPEN, seconds: 1 })
    const healthy = latenciesOf(await openLoop(ask, four, OPEN)).p99Ms
    process.kill(redis.pid, 'SIGSTOP')
    const frozen = latenciesOf(await openLoop(ask, four, OPEN)).p99Ms
    process.kill(redis.pid, 'SIGCONT')
    return { healthy, frozen }
  } finally {
    close()
    onIt.stop()
    await redis.stop()
  }
}

const p99Ms = await onRedis()
const grpcRatio = Math.min(
  ...rows.flatMap(({ name, ratio }) => (name.startsWith('Should') && ratio ? [ratio] : [])),
)
/** @type {import('./markdown.js').Target[]} */
const targets = [
  {
    name: 'ShouldRateLimit beside an empty grpc-js handler',
    sense: 'at least',
    target: 0.8,
    got: grpcRatio,
    met: grpcRatio >= 0.8,
  },
  {
    name: '2,000 a second, 4 descriptors, Redis healthy: p99 ms',
    sense: 'below',
    target: 10,
    got: p99Ms.healthy,
    met: p99Ms.healthy < 10,
  },
  {
    name: 'the same, Redis frozen: p99 ms',
    sense: 'below',
    target: 40,
    got: p99Ms.frozen,
    met: p99Ms.frozen < 40,
  },
]
const setting = {
  node: process.versions.node,
  redis: redisVersion(),
  cores: availableParallelism(),
  rounds: ROUNDS,
  load,
}
const results = { setting, rows, p99Ms, targets }
process.stdout.write(`${toMarkdown(results, '##')}\n\n`)
if (!options.quick) {
  await writeResults('services', {
    title: 'Services',
    json: results,
    markdown: heading => toMarkdown(results, heading),
  })
}
if (options.strict && targets.some(({ met }) => !met)) process.exitCode = 1
