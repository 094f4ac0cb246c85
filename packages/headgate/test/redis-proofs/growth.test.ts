/**
 * Nothing that a client can make larger grows without bound. Every named collection of the library and the server
 * is listed here with its bound; a new one has to be added. Those a client can reach are driven beyond their bounds
 * in a separate process, with Redis there and gone, and must leave the heap as it was.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { findFreePort } from '../support/free-port.ts'
import { startRedis } from '../support/redis-process.ts'
import { sourcesOf, withoutComments } from '../support/sources.ts'

/** Made from what the operator wrote, or from the existing nodes. */
const CONFIGURATION = 'configuration'
/** Filled when the program starts. */
const CONSTANT = 'constant'
/** Gone when its call, request or file is finished. */
const CALL = 'call'

/** By file: the name of the collection, and its bound. */
const BOUNDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'config/contradictions.ts': { names: CALL, tiers: CALL, policies: CALL, options: CALL, seen: CALL },
  'config/file/identify.ts': { read: CONFIGURATION },
  'config/file/limit.ts': { MAKERS: CONSTANT, algorithms: CONSTANT },
  'config/file/policy.ts': { ids: CALL },
  'subject/identify-by-sources.ts': { known: CONFIGURATION },
  'config/never-effective.ts': { charged: CALL },
  'config/config-error.ts': { issues: CALL },
  'config/settings.ts': { SWITCH: CONSTANT },
  'config/shape/maps.ts': { fields: CALL, read: CONFIGURATION },
  'config/text/read-json.ts': { value: CONFIGURATION, children: CALL, issues: CALL },
  'config/text/read-yaml.ts': { seen: CALL, anchors: CALL },
  'config/to-config.ts': { subjects: CONFIGURATION },
  'config/unreachable-subjects.ts': { types: CALL },
  'cost/graphql-cost.ts': { fragments: CALL, totals: CALL, begun: CALL },
  'decision/headers.ts': { DRAFTS: CONSTANT },
  'decision/limit-text.ts': { texts: CONFIGURATION },
  'gate/counts.ts': { shadow: CONFIGURATION, candidates: CONFIGURATION, byPolicy: CALL },
  'gate/explanation.ts': { all: CALL },
  'gate/inspection.ts': { byState: CALL, known: CALL },
  'gate/operators.ts': { ids: CALL },
  'fast-path/single-limit-requests.ts': {
    policies: CONFIGURATION,
    byTier: CONFIGURATION,
    resolved: '4,096 paths of 256 characters',
  },
  'gate/override-cache.ts': { entries: '10,000 overrides' },
  'observe/prometheus/families.ts': { byName: CALL, policies: CALL },
  'observe/statistics/arrivals.ts': { kept: 'MAX_ARRIVALS', subjects: 'MAX_SUBJECTS' },
  'observe/statistics/heavy-hitters.ts': { bySubject: 'room: 64 subjects' },
  'observe/statistics/latencies.ts': { counts: CONSTANT },
  'observe/statistics/recorder.ts': { exemplars: 'buckets of latencies' },
  'observe/statistics/report.ts': { listeners: CONFIGURATION, known: CALL },
  'observe/statistics/statistics.ts': { gates: CONFIGURATION },
  'observe/statistics/store-counts.ts': { breakers: CONFIGURATION },
  'observe/statistics/tally.ts': { byPolicy: 'MAX_TALLIES' },
  'observe/statistics/violations.ts': { quietUntilMs: 'MAX_QUIET', logged: 'LOGGED_A_SECOND' },
  'observe/sparingly.ts': { topics: 'MAX_TOPICS' },
  'outbound/adaptive-concurrency.ts': { waiting: 'calls under way' },
  'outbound/adaptive-hosts.ts': { hosts: 'MAX_HOSTS' },
  'outbound/limit-fetch.ts': { pausedUntilMs: 'MAX_PAUSED' },
  'limiter/turns.ts': { lastTurns: 'MAX_WAITING' },
  'limiter/places.ts': { held: 'requests under way' },
  'policy/applied-level.ts': { readings: CALL },
  'policy/candidates.ts': {
    keyed: CONFIGURATION,
    always: CONFIGURATION,
    set: CONFIGURATION,
    shared: CONFIGURATION,
  },
  'policy/claimed-methods.ts': { claims: CALL },
  'policy/compiled-config.ts': {
    rulesByName: CONFIGURATION,
    skippedExtensions: CONFIGURATION,
    subjects: CONFIGURATION,
    named: CONFIGURATION,
    policies: CONFIGURATION,
    tiers: CONFIGURATION,
  },
  'policy/find-levels.ts': { byTier: CONFIGURATION },
  'policy/active-config.ts': { levels: CONFIGURATION, configured: CONFIGURATION },
  'policy/ipv6-budgets.ts': { byTimes: CONFIGURATION },
  'policy/found-routes.ts': { seen: CALL },
  'policy/path-index.ts': { literals: CONFIGURATION },
  'policy/path-readings.ts': { texts: CALL, all: CALL },
  'policy/policies.ts': { ALGORITHMS: CONSTANT, parsed: CONFIGURATION, seen: CALL },
  'policy/question-of.ts': { live: CALL, byState: CALL },
  'store/bounded-map.ts': { young: 'half of max', old: 'half of max' },
  'store/check-map.ts': { byName: 'half of max', values: 'half of max' },
  'store/guard/batch.ts': { lanes: 'slots of a cluster' },
  'store/guard/breakers.ts': { nodes: CONFIGURATION, away: CONFIGURATION, callOffs: CONFIGURATION },
  'store/guard/deadlines.ts': { begun: 'requests under way', waiters: 'requests under way' },
  'store/guard/debts.ts': { untilUs: 'max' },
  'store/guard/deny-cache.ts': {
    denials: '10,000 subjects',
    unsettled: 'requests under way',
    subjects: CALL,
  },
  'store/guard/leases.ts': { leaseStates: '10,000 keys' },
  'store/guard/local-share.ts': { known: 'MAX_KNOWN keys' },
  'store/guard/log-outages.ts': { outages: CONFIGURATION },
  'store/guard/split-by-subject.ts': { groups: CALL, underWay: 'requests under way' },
  'engine/log-state.ts': { times: 'the limit', totals: 'the limit' },
  'store/memory/columns.ts': { states: 'maxKeys' },
  'store/memory/entry-blocks.ts': { freeNumbers: 'maxKeys', withRoom: 'sizes of a block' },
  'store/memory/row-columns.ts': {
    NO_PAGE: CONSTANT,
    page: 'one entry a row that was reset',
    pages: 'maxKeys',
  },
  'fast-path/single-limit-policies.ts': { byName: CONFIGURATION },
  'fast-path/kept-denials.ts': { denials: '64' },
  'store/memory/memory-control.ts': { entries: '10,000 overrides', watchers: CONFIGURATION },
  'store/memory/open-states.ts': { overflow: CONFIGURATION, added: 'checks of one question' },
  'store/memory/opened-rows.ts': { rows: 'checks of one question', states: 'checks of one question' },
  'store/memory/row-keys.ts': { rows: 'maxKeys', innerRows: 'maxKeys', keys: 'maxKeys', free: 'maxKeys' },
  'store/memory/row-limits.ts': { others: 'maxKeys' },
  'store/memory/states.ts': { tables: CONFIGURATION },
  'store/redis/clients/client-replacer.ts': { open: CONFIGURATION, timers: CONFIGURATION },
  'store/redis/clients/node-redis-nodes.ts': { looked: CALL },
  'store/redis/encode.ts': { numbers: CALL },
  'store/redis/first-connection.ts': { waiting: '10,000 calls under way' },
  'store/redis/heartbeat.ts': { acknowledged: CONFIGURATION, counts: CONFIGURATION, byNode: CALL },
  'store/redis/inspect.ts': { warned: CONSTANT },
  'store/redis/on-demand.ts': { unanswered: '10,000 checks under way' },
  'store/redis/redis-control.ts': { entries: '10,000 overrides', watchers: CONFIGURATION },
  'store/redis/script-runner.ts': { waiting: '10,000 calls under way' },
  'subject/remember-clients.ts': { names: 'REMEMBERED' },
  'subject/subject.ts': { ownSecretTypes: CONFIGURATION, names: 'REMEMBERED_NAMES' },
  'server: admin/admin-server.ts': { methodsOf: CONSTANT },
  'server: cli/banner.ts': { quotas: CALL },
  'server: cli/completion-command.ts': { words: CONSTANT },
  'server: cli/flags-from-environment.ts': { SWITCH: CONSTANT },
  'server: cli/in-option.ts': { OPTIONS: CONSTANT },
  'server: decision-api/decision-endpoints.ts': { names: CALL },
  'server: decision-api/references.ts': { decisions: 'MAX_REMEMBERED' },
  'server: envoy/config/load-descriptors.ts': { config: CONFIGURATION },
  'server: envoy/config/parse-descriptors.ts': { byKey: CONFIGURATION, found: CONFIGURATION },
  'server: envoy/convert/convert-descriptors.ts': { SUBJECTS: CONSTANT, names: CALL, subjects: CALL },
  'server: envoy/grpc/grpc-acceptor.ts': { sockets: '1,024 connections an address' },
  'server: envoy/grpc/health.ts': { watchers: 'MAX_WATCHERS' },
  'server: envoy/limits-of-ask.ts': { limits: CALL, places: CALL, replaced: CALL },
  'server: forward-auth/original-request.ts': { said: CALL },
  'server: http/bound-connections.ts': { connections: 'open sockets', responses: 'requests of a socket' },
  'server: http/close-gracefully.ts': { sockets: 'open sockets', sessions: 'open sessions' },
  'server: http/count-in-flight.ts': { counts: 'requests under way' },
  'server: log/write-line.ts': { writtenAtMs: '1,000 subjects' },
  'server: metrics/upstream-counts.ts': {
    byUpstream: 'MAX_UPSTREAMS',
    counted: 'classes of a status',
    adaptive: CALL,
    merged: CALL,
    names: CALL,
  },
  'server: observe/alert-watch.ts': { alerts: 'one of each name', resolved: 'KEPT', seconds: 'WINDOW' },
  'server: observe/figures.ts': { listeners: '100 streams', overridden: CALL, others: CALL },
  'server: observe/merge-reports.ts': { byNode: CALL, merged: CALL, policies: CALL },
  'server: observe/fleet-seconds.ts': { seen: '1,000 processes' },
  'server: observe/history.ts': { kept: 'MAX_POINTS' },
  'server: observe/processes.ts': { services: CALL },
  'server: observe/second.ts': { sums: CALL },
  'server: observe/violation-log.ts': { entries: 'KEPT' },
  'server: observe/violators.ts': { seconds: '300 seconds of 20', sums: CALL },
  'server: observe/what-if.ts': { played: CALL },
  'server: operators/http-operator-client.ts': { REASONS: CONSTANT },
  'server: gateway/quota-words.ts': { PERIODS: CONSTANT },
  'server: simulate/combined-log.ts': { remembered: 'MAX_REMEMBERED' },
  'server: simulate/csv-log.ts': { columns: 'the columns of a log' },
  'server: simulate/replay.ts': { byLimit: CONFIGURATION },
  'server: simulate/timeline.ts': { denied: 'MAX_STEPS', requests: 'MAX_STEPS' },
  'server: simulate/violators.ts': { kept: 'MAX_KEPT' },
  'server: workers/arrival-collector.ts': { open: CONFIGURATION },
  'server: workers/worker-counts.ts': { live: CONFIGURATION, waiting: CONSTANT },
  'server: gateway/end-to-end-headers.ts': {
    NOT_OF_CLIENTS: CONSTANT,
    NOT_OF_STRANGERS: CONSTANT,
    NOT_OF_UPSTREAMS: CONSTANT,
  },
  'server: gateway/serving.ts': {
    earlier: 'upstreams of the policy file',
    pools: 'upstreams of the policy file',
  },
}

/** Finds named collections: variables, fields and properties that hold a Map or Set, and arrays of classes. */
function collectionsIn(source: string): string[] {
  const code = withoutComments(source)
  const maps =
    /([\w$]+)(?:: [^=\n(]*)? (?:\?\?)?= (?:[^\n;]*[( ])?new (?:Map|Set|CheckMap|BoundedMap)\b|([\w$]+): new (?:Map|Set)\b/g
  const lists = /^ {2}(?:private |readonly |#)[^\n(]*?([\w$]+)(?:: [^=\n]*)? = (?:\[\]|new Array)/gm
  const found = [...code.matchAll(maps), ...code.matchAll(lists)]
  return [...new Set(found.map(([, name, property]) => (name ?? property) as string))]
}

describe('every collection', () => {
  const library = sourcesOf(join(import.meta.dirname, '../../src')).filter(
    ({ file }) => !file.startsWith('testing/'),
  )
  const server = sourcesOf(join(import.meta.dirname, '../../../server/src'))

  it('every collection is listed with what bounds it, and nothing else is', () => {
    const found = [...library, ...server.map(({ file, source }) => ({ file: `server: ${file}`, source }))]
      .map(({ file, source }) => [file, collectionsIn(source).sort()] as const)
      .filter(([, names]) => names.length > 0)
    const listed = Object.entries(BOUNDS).map(([file, bounds]) => [file, Object.keys(bounds).sort()])
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(listed))
  })

  it('a collection that is not listed would be noticed', () => {
    const source = `
      const seen = new Map<string, number>() // new Set()
      class Cache { readonly #kept: Set<string> = new Set() }
      const page = { rows: new Map() }
      known ??= new Set(names)\n  private readonly list: string[] = []\n`
    expect(collectionsIn(source).sort()).toEqual(['kept', 'known', 'list', 'page', 'seen'])
  })
})

/** Asks for new subjects, more than any bound, then for a fifth as many again, and reports what those have left. */
const DRIVER = `
  import { Redis } from 'ioredis'
  import { createLimiter, memoryStore, slidingWindowCounter, slidingWindowLog, tokenBucket } from './dist/index.js'
  import { redisStore } from './dist/redis.js'
  const [port, subjects] = process.argv.slice(1).map(Number)
  console.warn = () => {}
  const client = new Redis({ port, lazyConnect: true, retryStrategy: () => 1_000 })
  client.on('error', () => {})
  const store = redisStore(client, { processes: 4 })
  const limiter = createLimiter({
    store,
    policies: {
      once: slidingWindowLog({ limit: 1, window: '1h' }),
      dear: tokenBucket({ capacity: 10, refillPerSecond: 0.01 }),
      hot: { limits: slidingWindowCounter({ limit: 1_000, window: '1h' }), lease: 'auto' },
    },
  })
  const embedded = createLimiter({
    store: memoryStore({ maxKeys: 10_000 }),
    policies: { once: slidingWindowCounter({ limit: 1, window: '1h' }) },
  })
  let next = 0
  async function ask() {
    const id = (next++).toString(36) + '-' + Math.random().toString(36).slice(2)
    await limiter.check('apikey:' + id, { policy: 'once' })
    await limiter.check('apikey:' + id, { policy: 'once' })
    await limiter.check('user:' + id, { policy: 'dear', cost: 9, scope: '/' + id })
    await limiter.check('user:' + id, { policy: 'hot' })
    await embedded.check('user:' + id, { policy: 'once' })
    await embedded.check('user:' + id, { policy: 'once' })
  }
  async function round(subjects) {
    for (let done = 0; done < subjects; done += 500) {
      await Promise.all(Array.from({ length: 500 }, ask))
      // A turn of the event loop, which timers and sockets need.
      await new Promise(resolve => setImmediate(resolve))
    }
    gc()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = await round(subjects)
  const after = await round(subjects / 5)
  console.log(JSON.stringify({ grownBytes: after - before, asked: next, decidedHere: store.health().fallbackAllowed }))
  process.exit()
`

async function drive(port: number, subjects: number) {
  const args = ['--expose-gc', '--input-type=module', '-e', DRIVER, String(port), String(subjects)]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: join(import.meta.dirname, '../..'),
  })
  return JSON.parse(stdout) as {
    readonly grownBytes: number
    readonly asked: number
    readonly decidedHere: number
  }
}

describe('a flood of subjects nobody has seen', () => {
  const LONG = process.env.HEADGATE_LONG === '1'
  /** The size of one generation of a map. */
  const SLACK_BYTES = 16e6

  it('a flood of subjects nobody has seen leaves the heap as it was while Redis is gone', async () => {
    const { grownBytes, asked, decidedHere } = await drive(await findFreePort(), LONG ? 1_000_000 : 105_000)
    console.info(`${asked} subjects without Redis: the last sixth left ${Math.round(grownBytes / 1e3)} kB`)
    expect(decidedHere).toBeGreaterThan(asked / 2)
    expect(grownBytes).toBeLessThan(SLACK_BYTES)
  }, 600_000)

  // A million subjects through Redis take minutes.
  if (LONG) {
    it('a flood of subjects nobody has seen leaves the heap as it was while Redis is there', async () => {
      const server = await startRedis()
      try {
        const { grownBytes } = await drive(server.port, 1_000_000)
        expect(grownBytes).toBeLessThan(SLACK_BYTES)
      } finally {
        await server.stop()
      }
    }, 3_600_000)
  }
})
