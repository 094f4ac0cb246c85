/**
 * What all callers have used of a policy's quotas, read from Redis a page at a time.
 *
 * A page is a few steps of `SCAN`, so that Redis never blocks and nothing grows with the number of callers. `SCAN` finds
 * every key that is there from the first page to the last, and may find one twice: each row has an id, by which whoever
 * collects the pages tells. Its cursors mean something to the server process that gave them alone, so the cursor of
 * a page says which those were, and is rejected when they are others: rows would be missing, and nobody would know.
 */
import { createHash } from 'node:crypto'
import {
  type CheckOptions,
  type Config,
  createLimiter,
  HeadgateError,
  isHeadgateError,
  type QuotaUsage,
  type RuleLimiter,
} from 'headgate'
import { keyPattern, readKey } from 'headgate/internal'
import { createRedisStore, type RedisStoreByUrl } from './connect.js'
import { connectNodes, type RedisNode } from './nodes.js'

/** What a caller has used of a quota in one period. */
export interface UsageRow {
  /** Names the caller, the quota, the scope and the period: the same whenever it is exported. */
  readonly id: string
  /** As it is stored: of a key or a session, a digest. */
  readonly subject: string
  readonly policy: string
  readonly quota: string
  readonly scope: string
  readonly startsAt: string
  readonly endsAt: string
  readonly used: number
  readonly paidWithCredits: number
  readonly overage: number
}

/** Which page of which export. */
export interface UsageAsk {
  /** The policy or tier whose quotas are exported. */
  readonly of: { readonly policy: string } | { readonly tier: string }
  readonly period: 'current' | 'previous'
  /** `next` of the page before; null for the first. */
  readonly cursor: string | null
  /** How many rows are enough for a page. The last step of `SCAN` may add some. */
  readonly limit: number
}

export interface UsagePage {
  /** Those who have used something. There may be none although pages follow. */
  readonly rows: readonly UsageRow[]
  /** The cursor of the next page; null if this is the last. */
  readonly next: string | null
  /** How many were left out, because Redis keeps but a digest of their long names. */
  readonly leftOut: number
}

/** Reads pages, one at a time. */
export interface UsagePages {
  /** Rejects an ask that is wrong, and every ask while Redis does not answer. */
  read(asked: UsageAsk): Promise<UsagePage>
  close(): Promise<void>
}

export interface UsagePagesOptions {
  /** The Redis that keeps the quotas. Its connections are opened for the first page, and closed when no other follows. */
  readonly redis: Pick<RedisStoreByUrl, 'url' | 'ca' | 'use' | 'prefix' | 'tenant' | 'service'>
  /** The policy file in force. */
  config(): Config
}

/** How many keys Redis looks at in one step, and how many steps a page has. */
const MAX_KEYS_PER_STEP = 500
const MAX_STEPS = 20
/** Reading may take longer than a decision, and holds nobody up. */
const ANSWER_WITHIN_MS = 5_000
const CLOSE_AFTER_MS = 30_000
/** Beyond these, callers are told to come back. */
const MAX_WAITING = 8

/** Creates what reads pages from a Redis. A store of its own keeps its calls apart from those that decide. */
export function createUsagePages({ redis, config }: UsagePagesOptions): UsagePages {
  let opened: Promise<UsageReader> | null = null
  let idle: NodeJS.Timeout | undefined
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0

  async function close(): Promise<void> {
    clearTimeout(idle)
    const reader = opened
    opened = null
    await reader?.then(
      one => one.close(),
      () => {},
    )
  }

  async function readNow(asked: UsageAsk): Promise<UsagePage> {
    clearTimeout(idle)
    try {
      opened ??= UsageReader.open(redis, config())
      return await (await opened).page(config(), asked)
    } catch (error) {
      if (isHeadgateError(error) && !error.code.startsWith('ERR_HEADGATE_STORE')) throw error
      // Whatever is wrong with the connections, the next page has new ones.
      await close()
      throw isHeadgateError(error) ? error : unavailable((error as Error).message, error)
    } finally {
      idle = setTimeout(close, CLOSE_AFTER_MS).unref()
    }
  }

  return {
    read(asked) {
      if (waiting >= MAX_WAITING) {
        return Promise.reject(unavailable(`${waiting} other pages of usage are being read`))
      }
      waiting++
      const page = last.then(() => readNow(asked)).finally(() => waiting--)
      last = page.catch(() => {})
      return page
    },
    async close() {
      await last
      await close()
    },
  }
}

/** Where a page begins. */
interface Place {
  readonly quota: string
  /** The node, by its place among all. */
  readonly node: number
  /** `SCAN`'s own cursor there. */
  readonly scan: string
}

/** The connections to a Redis, and a limiter that reads its states. */
class UsageReader {
  #config: Config

  static async open(redis: UsagePagesOptions['redis'], config: Config): Promise<UsageReader> {
    const { nodes, close } = await connectNodes(redis.url, redis)
    const store = createRedisStore({ ...redis, deadlineMs: ANSWER_WITHIN_MS, onStoreFailure: 'throw' })
    const limiter = createLimiter({ config, store, onWarning: () => {} })
    await store.ready({ timeoutMs: ANSWER_WITHIN_MS })
    return new UsageReader(config, redis, limiter, [...nodes].sort(byName), close)
  }

  private constructor(
    config: Config,
    private readonly redis: UsagePagesOptions['redis'],
    private readonly limiter: RuleLimiter,
    private readonly nodes: readonly RedisNode[],
    private readonly closeNodes: () => void,
  ) {
    this.#config = config
  }

  async close(): Promise<void> {
    this.closeNodes()
    await this.limiter.close()
  }

  async page(config: Config, asked: UsageAsk): Promise<UsagePage> {
    if (config !== this.#config) {
      await this.limiter.reload(config)
      this.#config = config
    }
    const quotas = await this.#usage({ subject: NOBODY, scope: 'global' }, asked)
    const [first] = quotas
    if (first === undefined) {
      const field = 'policy' in asked.of ? 'policy' : 'tier'
      throw invalid(field, 'one that has a quota', 'one without')
    }
    const of = JSON.stringify([asked.of, asked.period, quotas.map(quota => boundsOf(quota, asked.period))])
    const servers = await this.#servers()
    let place: Place | null =
      asked.cursor === null
        ? { quota: first.quota, node: 0, scan: '0' }
        : this.#placeOf(asked.cursor, quotas, digestOf(of), servers)
    const rows = new Map<string, UsageRow>()
    let leftOut = 0
    for (let step = 0; step < MAX_STEPS && rows.size < asked.limit && place !== null; step++) {
      const quota = quotas.find(one => one.quota === place?.quota) as QuotaUsage
      const found = await this.#step(place, quota, Math.min(MAX_KEYS_PER_STEP, asked.limit - rows.size))
      leftOut += found.keys.filter(isUnnamed).length
      for (const row of await this.#rowsOf(found.keys, quota, asked)) rows.set(row.id, row)
      place = found.scan === '0' ? this.#after(place, quotas) : { ...place, scan: found.scan }
    }
    if ((await this.#servers()) !== servers) throw beginAgain('Redis was restarted or replaced meanwhile')
    const next = place === null ? null : encodeCursor(digestOf(of), servers, place)
    return { rows: [...rows.values()], next, leftOut }
  }

  /** A step of `SCAN`: some keys of a quota, each once, and where to go on. */
  async #step(
    { node, scan }: Place,
    { policy, quota }: QuotaUsage,
    count: number,
  ): Promise<{ readonly scan: string; readonly keys: readonly string[] }> {
    const pattern = keyPattern(this.#space(), `${policy}.${quota}`)
    const reply = await answered(this.nodes[node] as RedisNode, [
      ...['SCAN', scan, 'MATCH', pattern],
      ...['COUNT', String(count)],
    ])
    const [next, keys] = reply as [unknown, unknown[]]
    return { scan: String(next), keys: [...new Set(keys.map(String))] }
  }

  async #rowsOf(keys: readonly string[], of: QuotaUsage, asked: UsageAsk): Promise<readonly UsageRow[]> {
    const states = keys.flatMap(key => readKey(this.#space(), key) ?? [])
    const rows = await Promise.all(
      states.map(async ({ subject, scope }) => {
        const usages = await this.#usage({ subject, scope }, asked)
        const usage = usages.find(one => one.quota === of.quota)
        return usage === undefined ? [] : rowOf(subject, usage, of, asked.period)
      }),
    )
    return rows.flat()
  }

  #usage({ subject, scope }: { subject: string; scope: string }, { of }: UsageAsk) {
    return this.limiter.usage({ stored: subject }, { ...of, scope } as CheckOptions<string, string>)
  }

  /** Node by node, then quota by quota. */
  #after({ quota, node }: Place, quotas: readonly QuotaUsage[]): Place | null {
    if (node + 1 < this.nodes.length) return { quota, node: node + 1, scan: '0' }
    const following = quotas[quotas.findIndex(one => one.quota === quota) + 1]
    return following === undefined ? null : { quota: following.quota, node: 0, scan: '0' }
  }

  #placeOf(cursor: string, quotas: readonly QuotaUsage[], of: string, servers: string): Place {
    const { of: ofCursor, servers: serversOfCursor, ...place } = decodeCursor(cursor)
    if (ofCursor !== of) throw beginAgain('one of another policy or period, or of quotas that have changed')
    if (serversOfCursor !== servers) throw beginAgain('one from before Redis was restarted or replaced')
    const isKnown = quotas.some(({ quota }) => quota === place.quota) && place.node < this.nodes.length
    if (!isKnown) throw invalid('cursor', CURSOR, 'another text')
    return place
  }

  /** Which server processes these are: a restart and a failover change it. */
  async #servers(): Promise<string> {
    const infos = await Promise.all(this.nodes.map(node => answered(node, ['INFO', 'server'])))
    return digestOf(infos.map(info => /^run_id:(\S+)/m.exec(String(info))?.[1] ?? '').join(' '))
  }

  #space() {
    const { prefix = 'ratelimit', tenant = '' } = this.redis
    return { prefix, tenant }
  }
}

/** Reads the quotas of a policy and their periods; nobody is called that. */
const NOBODY = 'export:nobody'

function byName(one: RedisNode, other: RedisNode): number {
  return one.name < other.name ? -1 : 1
}

function boundsOf(usage: QuotaUsage, period: UsageAsk['period']): string {
  const { startsAt, endsAt } = period === 'current' ? usage : usage.previous
  return `${usage.quota} ${startsAt} ${endsAt}`
}

/** A part that is too long for a key is there as a digest. */
function isUnnamed(key: string): boolean {
  return key.includes('%~')
}

function rowOf(
  subject: string,
  usage: QuotaUsage,
  first: QuotaUsage,
  period: UsageAsk['period'],
): readonly UsageRow[] {
  if (boundsOf(usage, period) !== boundsOf(first, period))
    throw beginAgain('a period that has ended meanwhile')
  const { policy, quota, scope } = usage
  const { startsAt, endsAt, used, paidWithCredits, overage } = period === 'current' ? usage : usage.previous
  if (used === 0) return []
  const iso = (atMs: number): string => new Date(atMs).toISOString()
  const times = { startsAt: iso(startsAt), endsAt: iso(endsAt) }
  const id = digestOf(JSON.stringify([policy, quota, scope, subject, startsAt]))
  return [{ id, subject, policy, quota, scope, ...times, used, paidWithCredits, overage }]
}

const CURSOR = 'the cursor of the page before, as it was given'
const MAX_CURSOR_LENGTH = 1_024

function encodeCursor(of: string, servers: string, { quota, node, scan }: Place): string {
  return Buffer.from(JSON.stringify([of, servers, quota, node, scan])).toString('base64url')
}

function decodeCursor(cursor: string): Place & { readonly of: string; readonly servers: string } {
  try {
    if (cursor.length > MAX_CURSOR_LENGTH) throw new RangeError('too long')
    const [of, servers, quota, node, scan] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const isPlace = Number.isInteger(node) && node >= 0 && /^\d{1,20}$/.test(scan)
    if (isPlace) return { of, servers, quota, node, scan }
  } catch {
    // Reported below.
  }
  throw invalid('cursor', CURSOR, 'another text')
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** The client itself waits forever. */
async function answered(node: RedisNode, command: readonly string[]): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const words = `${command[0]} got no answer within ${ANSWER_WITHIN_MS} ms`
    timer = setTimeout(() => reject(unavailable(words)), ANSWER_WITHIN_MS)
  })
  return Promise.race([node.send(...command), late]).finally(() => clearTimeout(timer))
}

function unavailable(words: string, cause?: unknown): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE_UNAVAILABLE', `redis: ${words}`, { cause })
}

function beginAgain(got: string): HeadgateError {
  return invalid('cursor', 'none, to begin again with the first page', got)
}

function invalid(field: string, expected: string, got: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', { field, expected, got })
}
