/** Clients that spell a path or a method so that a wider rule, or none, applies. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDice, type Dice } from '../../../headgate/test/simulation/dice.js'
import { SCRIPT_SERVERS } from '../../../headgate/test/support/script-servers.js'
import { HIT, SERVERS } from '../../../headgate/test/support/server-setups.js'
import { SPELLINGS } from '../../../headgate/test/support/spellings.js'
import { lines, rawRequest } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { inParallel } from './in-parallel.js'
import { underAttack } from './target.js'

const LIMIT = 3
const QUIET_MS = 1_000
const AT_ONCE = 16
const policies = `policies:
  one: { algorithm: sliding-window-log, limit: 1, window: 1h }
  few: { algorithm: sliding-window-log, limit: ${LIMIT}, window: 1h }
  many: { algorithm: sliding-window-counter, limit: 1000000, window: 1h }
default: { policy: many }
`
const loginRules = `${policies}rules:
  - { match: { path: /public/* }, policy: many }
  - { match: { path: /search/:query }, policy: many }
  - { match: { path: /health }, policy: many }
  - { match: { path: /login }, policy: one }
`
const spellings = SPELLINGS.filter(spelling => spelling.of === '/login').map(({ target }) => target)
const deleteRules = `${policies}rules:
  - { match: { method: DELETE, path: /users/:id }, policy: few }
`

/**
 * Puts a real server behind the gateway, and counts the targets that reach its route `/login`; the plain path comes
 * first.
 */
async function reachedLogin(name: string, targets: readonly string[]): Promise<number> {
  const server = createServer(await (SERVERS[name] as (typeof SERVERS)[string])())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const upstreamUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let reached = 0
  try {
    await underAttack({ config: loginRules, upstreamUrl }, async ({ gatewayUrl }) => {
      const ask = async (target: string) => {
        const bytes = lines(`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close')
        const answer = await rawRequest(gatewayUrl, bytes, QUIET_MS)
        if (answer.header(HIT) === '/login') reached++
      }
      await ask('/login')
      await inParallel(targets.length, AT_ONCE, index => ask(targets[index] as string))
      return `${reached} reached it`
    })
    return reached
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

/** Attacks the servers one by one. The plain path has used the one request that /login allows. */
async function expectNoMore(names: readonly string[], targets: readonly string[]): Promise<string> {
  for (const name of names) {
    const reached = await reachedLogin(name, targets)
    if (reached !== 1) throw new Error(`${reached} reached /login of ${name}`)
  }
  return `none of ${targets.length}, at ${names.length} servers`
}

/** The same with a real server that runs scripts, and its first script. */
async function reachedScript(name: string, misspelt: (script: string) => readonly string[]): Promise<number> {
  const { routes, spellings, start } = SCRIPT_SERVERS[name] as (typeof SCRIPT_SERVERS)[string]
  const script = Object.values(routes)[0] as string
  const server = await start()
  const rules = `${policies}skip: { extensions: [css] }\nrules:
  - { match: { path: ${script} }, policy: few }
`
  let reached = 0
  try {
    const upstreamUrl = `http://127.0.0.1:${server.port}`
    await underAttack({ config: rules, upstreamUrl }, async ({ gatewayUrl }) => {
      const ask = async (target: string) => {
        const bytes = lines(`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close')
        const answer = await rawRequest(gatewayUrl, bytes, QUIET_MS)
        if (answer.header(HIT) === script) reached++
      }
      for (let time = 0; time < LIMIT; time++) await ask(script)
      const spelled = spellings.filter(({ of }) => of === script).map(({ target }) => target)
      const targets = [...spelled, ...misspelt(script)]
      await inParallel(targets.length, AT_ONCE, index => ask(targets[index] as string))
      return `${reached} reached it`
    })
    return reached
  } finally {
    await server.stop()
  }
}

const pathInfo: Attack = {
  name: 'path info',
  does: 'calls a limited script with path info, with trailing bytes and misspelt, at Python’s CGI server and at php-cgi',
  expected: `it runs ${LIMIT} times, as its rule says`,
  inShort: true,
  async run({ isShort, seed }) {
    const dice = createDice(seed).fork('path info')
    const misspelt = (script: string) =>
      Array.from({ length: isShort ? 0 : 500 }, () => misspell(dice, dice.pick([script, `${script}/x`])))
    const names = Object.keys(SCRIPT_SERVERS)
    const tried = isShort ? names.slice(0, 2) : names
    for (const name of tried) {
      const reached = await reachedScript(name, misspelt)
      if (reached !== LIMIT) throw new Error(`${name} ran it ${reached} times`)
    }
    return `${LIMIT} times, at ${tried.length} servers`
  },
}

const spelledPaths: Attack = {
  name: 'spelled paths',
  does: 'spells /login in every way we know that some server takes for it, beside wide rules, at real servers',
  expected: 'none reaches its handler after the one request that the rule of /login lets through',
  inShort: true,
  run: ({ isShort }) => expectNoMore(isShort ? ['express'] : Object.keys(SERVERS), spellings),
}

const PIECES = [
  '/',
  '//',
  '/./',
  '/../',
  '/..',
  '.',
  '..',
  '%2e',
  '%2E%2e',
  '%2f',
  '%2F',
  '\\',
  '%5c',
  '/\\x',
  '//x',
  ';',
  ';a=b',
  ';/',
  '%3b',
  '?',
  '%3f',
  '#',
  '%23',
  '%00',
  '%0a',
  '%09',
  '%20',
  '+',
  '%25',
  '%252f',
  '%',
  '%C5%BF',
  '%E2%84%AA',
  '%c0%af',
  '%u002f',
  '%ff',
  '%EF%BC%8F',
  '\xe9',
  '@',
  ':',
  '*',
  '~',
  '|',
  '"',
  '/public',
  '/public/..',
  '/search/..',
  '/health',
  'x',
  '/x/..',
  '.json',
  'http://x',
] as const

/** Returns the path with a piece inserted. */
function withPiece(path: string, at: number, piece: string): string {
  return path.slice(0, at) + piece + path.slice(at)
}

/** Returns a path with two or three changes: pieces inserted, letters encoded or in capitals. */
function misspell(dice: Dice, plain: string): string {
  let path = plain
  for (let left = dice.whole(2, 3); left > 0; left--) {
    // Servers are most lenient at the ends.
    const at = dice.chance(0.4) ? dice.pick([0, path.length]) : dice.whole(0, path.length)
    const letter = path.charAt(at)
    if (letter === '' || dice.chance(0.7)) path = withPiece(path, at, dice.pick(PIECES))
    else {
      const encoded = `%${path.charCodeAt(at).toString(16).padStart(2, '0')}`
      path = path.slice(0, at) + dice.pick([encoded, letter.toUpperCase()]) + path.slice(at + 1)
    }
  }
  return path
}

const misspeltPaths: Attack = {
  name: 'misspelt paths',
  does: 'misspells /login by every piece at every place, and by several at random, beside wide rules, at real servers',
  expected: 'none reaches its handler after the one request that the rule of /login lets through',
  inShort: false,
  async run({ seed }) {
    const dice = createDice(seed).fork('misspelt paths')
    const places = Array.from({ length: '/login'.length + 1 }, (_, at) => at)
    const once = PIECES.flatMap(piece => places.map(at => withPiece('/login', at, piece)))
    const several = Array.from({ length: 1_500 }, () => misspell(dice, '/login'))
    return expectNoMore(Object.keys(SERVERS), [...once, ...several])
  },
}

const OVERRIDES: readonly (readonly [string, readonly string[]])[] = [
  ['/users/42', ['X-HTTP-Method-Override: DELETE']],
  ['/users/42', ['X-HTTP-Method-Override: delete']],
  ['/users/42', ['X-HTTP-Method-Override: DELETE, x']],
  ['/users/42', ['X-HTTP-Method-Override: PUT', 'X-HTTP-Method-Override: DELETE']],
  ['/users/42', ['X_HTTP_Method_Override: DELETE']],
  ['/users/42', ['X-HTTP-Method: DELETE']],
  ['/users/42', ['X-Method-Override: DELETE']],
  ['/users/42?_method=DELETE', []],
  ['/users/42?_method=PUT&_method=DELETE', []],
  ['/users/42?_method=DELETE', ['X-HTTP-Method-Override: PUT']],
]

const claimedMethods: Attack = {
  name: 'claimed methods',
  does: `sends POST and claims DELETE in ${OVERRIDES.length} ways: headers, twice, in a list, in the query`,
  expected: `${LIMIT} are forwarded, as the rule of DELETE says`,
  inShort: true,
  run: () =>
    underAttack({ config: deleteRules }, async ({ gatewayUrl }) => {
      const statuses: number[] = []
      for (const [target, headers] of [...OVERRIDES, ...OVERRIDES]) {
        const head = [`POST ${target} HTTP/1.1`, 'Host: a', 'Connection: close', 'Content-Length: 0']
        statuses.push((await rawRequest(gatewayUrl, lines(...head, ...headers), QUIET_MS)).status)
      }
      const passed = statuses.filter(status => status === 200).length
      if (passed !== LIMIT) throw new Error(`${passed} of ${statuses.length} passed: ${statuses}`)
      return `${passed} of ${statuses.length} forwarded`
    }),
}

const FREE_LIMIT = 5
const freeRules = (refundIf: string) => `policies:
  files: { algorithm: sliding-window-log, limit: ${FREE_LIMIT}, window: 1h }
default: { policy: files }
rules:
  - { match: { path: /* }, policy: files, refundIf: ${refundIf} }
`

/** Counts the requests that pass, of 200 whose responses are all free. */
function passedFree(refundIf: string): Promise<number> {
  let passed = 0
  return underAttack({ config: freeRules(refundIf) }, async ({ gatewayUrl, upstream }) => {
    upstream.answerWith('HTTP/1.1 304 Not Modified\r\n\r\n')
    const bytes = lines('GET /logo HTTP/1.1', 'Host: a', 'If-None-Match: *', 'Connection: close')
    for (let sent = 0; sent < 200; sent++) {
      if ((await rawRequest(gatewayUrl, bytes, QUIET_MS)).status === 304) passed++
    }
    return `${passed} passed`
  }).then(() => passed)
}

const chosenStatus: Attack = {
  name: 'a chosen status',
  does: `sends \`If-None-Match: *\` with 200 requests where a 304 is free and ${FREE_LIMIT} may pass`,
  expected: `at most twice the limit passes; with \`atMost\`, the limit and that many more`,
  inShort: true,
  async run() {
    const byDefault = await passedFree('304')
    const byRate = await passedFree('{ status: 304, atMost: 20/1h }')
    if (byDefault > 2 * FREE_LIMIT || byRate > FREE_LIMIT + 20)
      throw new Error(`${byDefault} passed, ${byRate} with atMost`)
    return `${byDefault} of 200 passed, ${byRate} with atMost: 20/1h`
  },
}

export const rules: AttackGroup = {
  title: 'Rules',
  attacks: [spelledPaths, misspeltPaths, pathInfo, claimedMethods, chosenStatus],
}
