/** Callers who take an upstream for themselves: by slow requests, by many, or by leaving before they are answered. */
import { once } from 'node:events'
import { Agent, type ClientRequest, createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack, AttackGroup } from './attack.js'
import { type Target, underAttack } from './target.js'

const SLOW_MS = 3_000
/** Long enough that a busy machine, which delays all answers, does not look like a slow upstream. */
const FAST_MS = 150
const GREEDY = 120
const HONEST = 40
const SOON_MS = 500
const LASTS_MS = 8_000
const LEAST_KEPT = 0.8
/** Another program may take the processor in one round, and hardly in all of them. */
const ROUNDS = 3

/** A server that takes as long as a request asks for, however many ask. */
async function startUpstream(): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((req, res) => {
    const ms = Number(/ms=(\d+)/.exec(req.url ?? '')?.[1] ?? 0)
    setTimeout(() => res.end('done'), ms)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

const configFor = (url: string, rest = '') => `
policies:
  api: { algorithm: sliding-window-counter, limit: 4000000000, window: 1m }
default: { policy: api }
trustedProxies: [127.0.0.1]
${rest}
routes:
  - match: { path: /work }
    upstream: { urls: ['${url}'], concurrency: { floor: 4, ceiling: 500 } }
`

interface Callers {
  /** Requests answered with 200, and rejected. */
  readonly counts: { answered: number; rejected: number }
  stop(): Promise<void>
}

interface CallerOptions {
  readonly path: string
  /** The address each of them claims, behind the trusted proxy that we are. */
  address(index: number): string
  /** How long a request waits for an answer. */
  readonly patienceMs?: number
}

/** Clients that each send one request after the other. */
function keepAsking({ gatewayUrl }: Target, count: number, options: CallerOptions): Callers {
  const agent = new Agent({ keepAlive: true })
  const counts = { answered: 0, rejected: 0 }
  let isOver = false
  const ask = (index: number) =>
    new Promise<number | null>(resolve => {
      const sent = request(`${gatewayUrl}${options.path}`, {
        agent,
        headers: { 'X-Forwarded-For': options.address(index) },
      })
      const timer = setTimeout(() => sent.destroy(), options.patienceMs ?? 30_000)
      sent.on('response', incoming => {
        incoming.resume().once('end', () => resolve(incoming.statusCode ?? null))
      })
      sent.on('error', () => resolve(null)).on('close', () => clearTimeout(timer))
      sent.end()
    })
  const callers = Array.from({ length: count }, async (_, index) => {
    while (!isOver) {
      const status = await ask(index)
      if (isOver) return
      if (status === 200) counts.answered++
      else {
        counts.rejected++
        await sleep(SOON_MS)
      }
    }
  })
  return {
    counts,
    async stop() {
      isOver = true
      agent.destroy()
      await Promise.all(callers)
    },
  }
}

/** Returns how many answers honest callers get in a time. */
async function answersOf(target: Target, path: string, forMs: number): Promise<number> {
  const honest = keepAsking(target, HONEST, { path, address: index => `198.51.100.${index + 1}` })
  await sleep(forMs)
  const { answered } = honest.counts
  await honest.stop()
  return answered
}

/**
 * Counts how many honest requests are answered while one address has as many as it gets, each of which lasts as long as
 * the attack: no times are compared, so that a busy machine changes nothing.
 */
async function besideHeld(paths: { readonly greedy: string; readonly honest: string }): Promise<string> {
  const { url, server } = await startUpstream()
  const agent = new Agent({ keepAlive: true })
  try {
    return await underAttack({ config: configFor(url) }, async ({ gatewayUrl }) => {
      const ask = (path: string, address: string) =>
        new Promise<number | null>(resolve => {
          request(`${gatewayUrl}${path}`, { agent, headers: { 'X-Forwarded-For': address } })
            .on('response', incoming => resolve(incoming.resume().statusCode ?? null))
            .on('error', () => resolve(null))
            .end()
        })
      const rejected: Promise<unknown>[] = []
      const held: ClientRequest[] = []
      for (let index = 0; index < GREEDY; index++) {
        const sent = request(`${gatewayUrl}${paths.greedy}`, {
          headers: { 'X-Forwarded-For': '203.0.113.9' },
        })
        rejected.push(new Promise(resolve => sent.on('response', resolve)))
        held.push(sent.on('error', () => {}))
        sent.end()
      }
      // The others of the greedy caller have been rejected by then.
      await Promise.any(rejected)
      let answered = 0
      for (let index = 0; index < HONEST; index++) {
        if ((await ask(paths.honest, `198.51.100.${index + 1}`)) === 200) answered++
      }
      for (const sent of held) sent.destroy()
      agent.destroy()
      const words = `${answered} of ${HONEST} honest requests answered beside ${GREEDY} greedy ones`
      if (answered < LEAST_KEPT * HONEST) throw new Error(words)
      return words
    })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

/** Compares what honest callers get with and without the attack. */
async function againstHonest(
  paths: { readonly greedy: string; readonly honest: string },
  greedy: Partial<CallerOptions>,
  rest?: string,
): Promise<string> {
  const { url, server } = await startUpstream()
  const args = ['--max-client-requests', '0', '--max-client-connections', '0']
  try {
    return await underAttack({ config: configFor(url, rest), args }, async target => {
      // The first answers make the limit known.
      await answersOf(target, paths.honest, 1_500)
      const tried: string[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const alone = await answersOf(target, paths.honest, LASTS_MS)
        const attackers = keepAsking(target, GREEDY, {
          path: paths.greedy,
          address: () => '203.0.113.9',
          ...greedy,
        })
        await sleep(300)
        const beside = await answersOf(target, paths.honest, LASTS_MS)
        await attackers.stop()
        tried.push(`${beside} answers beside ${GREEDY} greedy requests, ${alone} without`)
        if (beside >= LEAST_KEPT * alone) return tried.at(-1) as string
      }
      throw new Error(tried.join('; '))
    })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const KEPT = 'honest callers keep at least 80 % of the answers they had'

const slowCaller: Attack = {
  name: 'a slow caller',
  does: `keeps ${GREEDY} requests of ${SLOW_MS / 1_000} s in progress from one address, at an upstream with \`concurrency\``,
  expected: KEPT,
  inShort: true,
  run: ({ isShort }) =>
    isShort
      ? besideHeld({ greedy: '/work/report?ms=60000', honest: '/work/item?ms=1' })
      : againstHonest({ greedy: `/work/report?ms=${SLOW_MS}`, honest: `/work/item?ms=${FAST_MS}` }, {}),
}

const slowOnTheSameRoute: Attack = {
  name: 'a slow caller of the same route',
  does: 'the same on the route that the others use',
  expected: KEPT,
  inShort: false,
  run: () => againstHonest({ greedy: `/work/item?ms=${SLOW_MS}`, honest: `/work/item?ms=${FAST_MS}` }, {}),
}

const releases: Attack = {
  name: 'callers that leave',
  does: `sends slow requests from one address, ${GREEDY} at a time, and leaves each after 50 ms`,
  expected: KEPT,
  inShort: false,
  run: () =>
    againstHonest(
      { greedy: `/work/item?ms=${SLOW_MS}`, honest: `/work/item?ms=${FAST_MS}` },
      { patienceMs: 50 },
    ),
}

const manyLowCallers: Attack = {
  name: 'many callers of low priority',
  does: `keeps ${GREEDY} requests in progress from as many addresses, by a rule of \`priority: low\``,
  expected: KEPT,
  inShort: false,
  run: () =>
    againstHonest(
      { greedy: `/work/batch?ms=${SLOW_MS}`, honest: `/work/item?ms=${FAST_MS}` },
      { address: index => `203.0.113.${index + 1}` },
      'rules:\n  - { name: batch, match: { path: /work/batch }, policy: api, priority: low }',
    ),
}

export const overload: AttackGroup = {
  title: 'Overload and fairness',
  attacks: [slowCaller, slowOnTheSameRoute, releases, manyLowCallers],
}
