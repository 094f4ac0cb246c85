/**
 * No spelling of a path is better off than the route it leads to. Spellings are sent to real servers as they are,
 * and whichever route a server takes one for, the request must be held to everything that applies to that route, at
 * no lower cost, whatever the rules and their order.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ActiveConfig, activateConfig } from '../../src/policy/active-config.js'
import { compileConfig } from '../../src/policy/compiled-config.js'
import type { Config, RuleConfig } from '../../src/policy/config.js'
import { NORMAL } from '../../src/policy/control.js'
import { pathReadings } from '../../src/policy/path-readings.js'
import { resolve } from '../../src/policy/resolve.js'
import { runAtOnce } from '../../src/time/steps.js'
import { configOf, overridesOf, perMinute, ruleOf } from '../support/rule-config.ts'
import { SCRIPT_SERVERS } from '../support/script-servers.ts'
import { HIT, ROUTES, SERVERS } from '../support/server-setups.ts'
import { SPELLINGS, type Spelling } from '../support/spellings.ts'

const isLong = process.env.HEADGATE_LONG === '1'
/** All of them take a minute; the short selection takes a different part of them for each server. */
const [EVERY, RULE_SETS] = isLong ? [1, 200] : [4, 40]

/** A server that starts a process for each request must not be asked for all of them at once. */
const AT_ONCE = 16

/** The paths of rules; none of them hides another, in any order. */
const PATHS = [
  '/login',
  '/token/',
  '/health',
  '/users/:id',
  '/users/:id/export',
  '/search/:query',
  '/public/*',
  '/Keys/:key/uses',
  '/users/*',
  '/:page',
  '/*',
  '/search/*',
  '/cgi-bin/login.py',
  '/cgi-bin/token',
  '/cgi-bin/:script',
  '/cgi-bin/admin/:script',
  '/cgi-bin/*',
  '/login.php',
  '/users/list.php',
]
const POLICIES = Object.fromEntries(PATHS.map((_, index) => [`p${index}`, perMinute(index + 1)]))

/** A rule for each path, or for some of them, in any order, with or without methods and costs of their own. */
const ruleSets = fc.record({
  rules: fc
    .shuffledSubarray(PATHS, { minLength: 1 })
    .chain(paths => fc.tuple(...paths.map(path => ruleFor(path)))) as fc.Arbitrary<RuleConfig[]>,
  costs: fc.array(
    fc.record({
      method: fc.constantFrom(null, 'GET', 'POST'),
      path: fc.constantFrom(...PATHS),
      cost: fc.integer({ min: 1, max: 9 }),
    }),
    { maxLength: 4 },
  ),
  skip: fc.record({
    prefixes: fc.subarray(['/public', '/health']),
    extensions: fc.subarray(['css']),
  }),
  levels: fc.constantFrom<Config['levels']>('most-specific', 'all', 'first-available'),
})

function ruleFor(path: string): fc.Arbitrary<RuleConfig> {
  return fc
    .record({
      methods: fc.constantFrom(null, ['GET'], ['POST']),
      cost: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
      mode: fc.constantFrom<RuleConfig['mode']>('enforce', 'enforce', 'shadow'),
    })
    .map(({ methods, cost, mode }) =>
      ruleOf({
        name: path,
        match: { path, methods },
        charge: { policy: `p${PATHS.indexOf(path)}` },
        ...(cost !== undefined && { cost }),
        ...(mode !== undefined && { mode }),
      }),
    )
}

const ruleSetsToTry: readonly ActiveConfig[] = fc
  .sample(ruleSets, { numRuns: RULE_SETS, seed: 7 })
  .map(changes =>
    activateConfig(
      runAtOnce(compileConfig(configOf({ ...changes, policies: POLICIES }), subject => subject)),
      {
        control: NORMAL,
        overrides: overridesOf([]),
        defaultFailure: 'local',
      },
    ),
  )

/** Returns what a request is held to: the states that must have room, per alternative, and the units of each. */
function heldTo(active: ActiveConfig, target: string) {
  const facts = { subjects: ['ip:192.0.2.1'], methods: ['GET'], tier: null, scope: null, cost: null }
  const { question, bypass } = resolve(active, { ...facts, path: pathReadings(target) ?? 'too-many' }, 0)
  const isTurnedAway = question.alternatives.some(checks =>
    checks.some(({ name }) => name.startsWith('unreadable')),
  )
  return {
    isTurnedAway,
    bypass,
    alternatives: question.alternatives.map(checks => new Map(checks.map(({ name, cost }) => [name, cost]))),
  }
}

/** Whether everything that admits the spelling would also admit the plain path, and charges no less. */
function isNoBetterOff(active: ActiveConfig, spelling: string, plain: string): boolean {
  const spelt = heldTo(active, spelling)
  if (spelt.isTurnedAway) return true
  const expected = heldTo(active, plain)
  if (expected.bypass !== null) return true
  if (spelt.bypass !== null) return false
  return spelt.alternatives.every(alternative =>
    expected.alternatives.some(wanted =>
      [...wanted].every(([name, cost]) => (alternative.get(name) ?? 0) >= cost),
    ),
  )
}

/** Checks every spelling that a server takes for a route against all rule sets. */
async function expectNoBetterOff(
  port: number,
  sent: readonly Spelling[],
  routes: Readonly<Record<string, string>>,
): Promise<void> {
  const hits: (Spelling & { hit: string })[] = []
  for (let next = 0; next < sent.length; next += AT_ONCE) {
    const some = sent.slice(next, next + AT_ONCE)
    const found = await Promise.all(some.map(one => hitOf(port, one)))
    found.forEach((hit, index) => {
      if (hit !== null) hits.push({ ...(some[index] as Spelling), hit })
    })
  }
  expect(hits.length).toBeGreaterThan(sent.length / 10)
  const better = hits.filter(
    ({ target, hit }) => !ruleSetsToTry.every(active => isNoBetterOff(active, target, routes[hit] as string)),
  )
  expect(better.map(({ turn, target, hit }) => `${turn}: ${target} hits ${hit}`)).toEqual([])
}

function partFor(server: number, all: readonly Spelling[]): readonly Spelling[] {
  return all.filter((_, index) => index % EVERY === server % EVERY)
}

describe.each(Object.entries(SERVERS))('%s', (name, app) => {
  let server: Server
  beforeAll(async () => {
    server = createServer((await app()) as RequestListener)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => void server.close())

  it('no spelling is taken for a route that is better off than the route itself', async () => {
    const sent = partFor(Object.keys(SERVERS).indexOf(name), SPELLINGS)
    await expectNoBetterOff((server.address() as AddressInfo).port, sent, ROUTES)
  })
})

describe.each(Object.entries(SCRIPT_SERVERS))('%s', (name, { routes, spellings, start }) => {
  it('no spelling is taken for a script that is better off than the script itself', async () => {
    const server = await start()
    try {
      const sent = partFor(Object.keys(SCRIPT_SERVERS).indexOf(name), spellings)
      await expectNoBetterOff(server.port, sent, routes)
    } finally {
      await server.stop()
    }
  })
})

/** Sent by hand, because every client would normalise the target. */
function hitOf(port: number, { target }: Spelling): Promise<string | null> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', chunk => {
      text += chunk
    })
    // A reset is one way to reject.
    socket.on('error', () => {})
    socket.on('close', () => {
      const [, hit] = new RegExp(`^${HIT}: (.*)$`, 'im').exec(text) ?? []
      resolve(hit ?? null)
    })
    // Not ended: to nginx, a client that sends no more has gone.
    socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  })
}
