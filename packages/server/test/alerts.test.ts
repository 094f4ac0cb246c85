/** Alerts: when they begin and end, which server sends them, and that a receiver gets each once. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import {
  ALERT_NAMES,
  type Alert,
  DEFAULT_RULES,
  evaluate,
  type Observation,
} from '../src/observe/alert-rules.js'
import { AlertWatch, type Looked } from '../src/observe/alert-watch.js'
import type { Second } from '../src/observe/second.js'
import { UsualRate } from '../src/observe/usual-rate.js'
import { createWebhook } from '../src/observe/webhook.js'

const QUIET: Observation = {
  'denial-rate': 0,
  latency: 1,
  'store-down': 0,
  spike: 1,
  'budget-operations': null,
  'budget-memory': null,
}

/** Evaluates the observations once a second, and returns what changed when. */
function history(seconds: number, observe: (second: number) => Partial<Observation>): string[] {
  let alerts: readonly Alert[] = []
  const told: string[] = []
  for (let second = 0; second < seconds; second++) {
    const observation = { ...QUIET, ...observe(second) }
    const looked = evaluate(alerts, { observation, rules: DEFAULT_RULES, nowMs: second * 1000 })
    alerts = looked.alerts
    for (const { name, state } of looked.changed) told.push(`${second} ${name} ${state}`)
  }
  return told
}

describe('an alert', () => {
  it('an alert fires when it was held, and is over when it has been quiet', () => {
    const told = history(400, second => (second >= 10 && second < 100 ? { 'denial-rate': 0.3 } : {}))
    expect(told).toEqual(['70 denial-rate firing', '220 denial-rate resolved'])
  })

  it('an alert that comes and goes within its hold is nothing, and one that flickers is one', () => {
    expect(history(300, second => ({ latency: second % 50 < 40 ? 80 : 1 }))).toEqual([])
    const flicker = history(400, second => ({ latency: second < 70 || second % 100 < 50 ? 80 : 1 }))
    expect(flicker).toEqual(['60 latency firing'])
  })

  it('an alert at its threshold does not fire; one of the store does, after its minute', () => {
    expect(history(200, () => ({ 'denial-rate': 0.1, latency: 50 }))).toEqual([])
    expect(history(120, second => ({ 'store-down': second }))).toEqual(['60 store-down firing'])
  })

  it('an alert neither begins nor ends while nothing is known', () => {
    const told = history(500, second => ({
      spike: second < 100 ? 9 : second < 300 ? null : 1,
      'budget-operations': 1e9,
    }))
    expect(told).toEqual(['30 spike firing', '360 spike resolved'])
  })

  it('an alert says in words what is the matter', () => {
    const rules = { ...DEFAULT_RULES, 'budget-memory': { threshold: 1e6, holdMs: 0, resolveMs: 0 } }
    const observation = { ...QUIET, 'denial-rate': 0.234, 'budget-memory': 5_000_000 }
    const { alerts } = evaluate([], { observation, rules, nowMs: 0 })
    expect(alerts.map(({ text }) => text)).toEqual([
      '23.4 % of requests are denied (threshold 10 %)',
      'Redis uses 5 MB of memory (budget 1 MB)',
    ])
  })
})

it('the usual rate is known after five minutes, and grows slowly', () => {
  const usual = new UsualRate()
  for (let second = 0; second < 299; second++) usual.learn(100)
  expect(usual.times(600)).toBeNull()
  usual.learn(100)
  expect(usual.times(600)).toBeCloseTo(6, 5)
  for (let second = 0; second < 900; second++) usual.learn(200)
  expect(usual.times(600)).toBeGreaterThan(3.3)
})

const NOTHING: Second = {
  atMs: 0,
  durationMs: 1_000,
  decisions: [],
  shadowDenied: 0,
  shadowCallers: { deniedCallers: [], unlistedAtMost: 0, sampledOneIn: 1 },
  breakers: [],
  deniedCallers: [],
  unlistedAtMost: 0,
  sampledOneIn: 1,
  denials: [],
  store: {
    calls: 0,
    checks: 0,
    failedCalls: 0,
    latency: { counts: [], sumUs: 0 },
    failures: { timeout: 0, unavailable: 0, connection: 0, reply: 0, key: 0, capped: 0, other: 0 },
    fallbackAllowed: 0,
    fallbackDenied: 0,
    denyCache: 0,
    leased: 0,
    leases: 0,
    leaseUnits: 0,
    lostWrites: 0,
    lateUnits: 0,
    droppedUnits: 0,
  },
}
const REFUSED: Second = {
  ...NOTHING,
  decisions: [
    {
      policy: 'api',
      tier: null,
      rule: null,
      source: 'redis',
      allowed: 50,
      denied: 50,
      nearLimit: 0,
      latency: { counts: [100], sumUs: 1 },
    },
  ],
}

describe('of several servers', () => {
  function server(id: string) {
    const told: string[] = []
    let nowMs = 0
    const watch = new AlertWatch({
      rules: DEFAULT_RULES,
      tell: ({ name, state }) => told.push(`${name} ${state}`),
      unixMs: () => nowMs,
    })
    const look = (atMs: number, looked: Partial<Looked> = {}) => {
      nowMs = atMs
      watch.look({
        second: REFUSED,
        storeDownMs: null,
        redis: null,
        others: new Map(),
        rank: id,
        isHeard: true,
        ...looked,
      })
    }
    return { watch, told, look }
  }

  it('one of several servers sends alerts, another shows what that one found, and takes over where it left off', () => {
    const [first, second] = [server('a'), server('b')]
    for (let atMs = 0; atMs <= 90_000; atMs += 1_000) {
      first.look(atMs, { others: new Map([['b', second.watch.note()]]) })
      second.look(atMs, { others: new Map([['a', first.watch.note()]]) })
    }
    expect([first.told, second.told]).toEqual([['denial-rate firing'], []])
    expect(second.watch.firing()).toEqual(first.watch.firing())
    for (let atMs = 91_000; atMs <= 400_000; atMs += 1_000) second.look(atMs, { second: NOTHING })
    expect(second.told).toEqual(['denial-rate resolved'])
    expect(second.watch.list()).toMatchObject([{ name: 'denial-rate', state: 'resolved' }])
  })

  it('a server that starts later, or was not heard at first, repeats no alert', () => {
    const [first, later] = [server('b'), server('a')]
    for (let atMs = 0; atMs <= 90_000; atMs += 1_000) {
      first.look(atMs)
      later.look(atMs, { isHeard: false })
    }
    expect([first.told, later.told]).toEqual([['denial-rate firing'], []])
    const others = new Map([['b', first.watch.note()]])
    for (let atMs = 91_000; atMs <= 200_000; atMs += 1_000) later.look(atMs, { others })
    expect(later.told).toEqual([])
    expect(later.watch.firing()).toMatchObject([{ name: 'denial-rate' }])
  })

  it('each server alerts to an unreachable store, and to nothing else that it cannot know then', () => {
    const [first, second] = [server('a'), server('b')]
    first.look(0)
    second.look(0, { others: new Map([['a', first.watch.note()]]) })
    for (let atMs = 1_000; atMs <= 90_000; atMs += 1_000)
      for (const one of [first, second]) one.look(atMs, { isHeard: false, storeDownMs: atMs })
    expect(first.told.toSorted()).toEqual(['denial-rate firing', 'store-down firing'])
    expect(second.told).toEqual(['store-down firing'])
    for (let atMs = 91_000; atMs <= 110_000; atMs += 1_000)
      second.look(atMs, { others: new Map([['a', first.watch.note()]]) })
    expect(second.told).toEqual(['store-down firing', 'store-down resolved'])
  })
})

describe('a webhook', () => {
  const alert = {
    name: 'latency',
    state: 'firing',
    text: 'slow',
    value: 80,
    threshold: 50,
    sinceMs: 0,
  } as Alert

  it('a webhook is called in Slack’s format, again when it fails, and once when it works', async () => {
    const bodies: { text: string; attachments: unknown[] }[] = []
    let failures = 2
    const receiver = createServer((req, res) => {
      let text = ''
      req.on('data', chunk => {
        text += chunk
      })
      req.on('end', () => {
        res.statusCode = failures-- > 0 ? 500 : 200
        if (res.statusCode === 200) bodies.push(JSON.parse(text))
        res.end()
      })
    }).listen(0, '127.0.0.1')
    await new Promise(resolve => receiver.once('listening', resolve))
    const { port } = receiver.address() as { port: number }
    const pauses: number[] = []
    const after = (ms: number, work: () => void) => {
      pauses.push(ms)
      work()
    }
    createWebhook({ url: `http://127.0.0.1:${port}/hook`, log: () => {}, after, fetch })(alert)
    await vi.waitFor(() => expect(bodies).toHaveLength(1), 20_000)
    expect(bodies[0]?.text).toBe('Firing: Headgate latency: slow')
    expect(Object.keys(bodies[0] ?? {})).toEqual(['text', 'attachments'])
    expect(pauses).toEqual([1_000, 2_000])
    receiver.close()
    receiver.closeAllConnections()
  })

  it('a webhook that never works is given up with a line that does not name it', async () => {
    const lines: string[] = []
    const url = 'http://127.0.0.1:1/secret-path'
    createWebhook({ url, log: line => lines.push(line), after: (_, work) => work(), fetch })(alert)
    await vi.waitFor(() => expect(lines).toHaveLength(1), 20_000)
    expect(lines[0]).toBe('alerts: latency was not delivered to the webhook in 5 tries: it cannot be reached')
  })
})

it('the guide says of every alert when it fires and what to do, and every runbook of the rules is there', () => {
  const file = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
  const guide = file('docs/guide/operate.md')
  const headings = [...guide.matchAll(/^###? (.+)$/gm)].map(([, text = '']) => text)
  for (const name of ALERT_NAMES) {
    expect(guide).toMatch(new RegExp(`^\\|.*\`${name}\`.*\\|`, 'm'))
    expect(headings).toContain(name)
  }
  const anchors = headings.map(text =>
    text
      .toLowerCase()
      .replaceAll(/[^a-z -]/g, '')
      .replaceAll(' ', '-'),
  )
  const runbooks = file('deploy/prometheus/headgate.rules.yml').matchAll(
    /runbook: docs\/guide\/operate\.md#(.+)$/gm,
  )
  for (const [, anchor] of runbooks) expect(anchors).toContain(anchor)
})
