import { AsyncLocalStorage } from 'node:async_hooks'
import type {
  ClientRateLimitInfo,
  Store as HitStore,
  Options,
  ValueDeterminingMiddleware,
} from 'express-rate-limit'
import type { Refund } from '../check/check.js'
import { HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { type Answer, askStore, type Question } from '../store/ask-store.js'
import type { Store } from '../store/store.js'
import { createSubjectNamer, type SubjectInput, type SubjectOptions } from '../subject/subject.js'
import { systemClock } from '../time/clock.js'
import {
  type Counted,
  checksOfRequest,
  countUpTo,
  EVERY_HIT,
  type HitCounting,
  parseOptions,
} from './hit-counting.js'

export interface RateLimitStoreOptions {
  /** Where hits are counted: `memoryStore()` or `redisStore(client)`. Several middlewares may share one. */
  readonly store: Store
  /** Separates the budgets of two middlewares. Default `express-rate-limit`. */
  readonly name?: string
  /** How keys that are not addresses are hashed; they may be secrets. */
  readonly subject?: SubjectOptions
}

/** A store for one middleware of express-rate-limit. */
export interface RateLimitStore extends HitStore {
  /**
   * Makes the `limit` of the middleware from a function of the request, and learns from it which hits are denied, so
   * that they cost nothing. The middleware by itself only tells a store about hits.
   */
  limit(limitOf: ValueDeterminingMiddleware<number>): ValueDeterminingMiddleware<number>
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/
/** An IPv6 address, or the network around it as express-rate-limit names its callers. */
const IPV6 = /^(?=[\da-f.]*:)[\da-f:.]+(?:\/\d{1,3})?$/i
/** Callers for whom `keyGenerator` finds nothing share a budget. */
const ANONYMOUS = 'anonymous:unknown' satisfies SubjectInput
/** A subject that is never charged. */
const NOBODY = 'headgate:nobody'

/** The hit of a request. The middleware may take it back when the response has ended. */
interface Hit {
  readonly key: string
  /** What it was charged: nothing if it was denied. */
  charges: readonly Refund[]
  info: ClientRateLimitInfo | null
  isTakenBack: boolean
}

/** The stores of middlewares that share a store, until they are shut down. */
const sharing = new WeakMap<Store, Set<object>>()

/**
 * Creates a store for express-rate-limit 8: an app keeps its middleware and options, and hits are counted in a
 * sliding window, in this process or in Redis. A denied request costs nothing; for a `limit` that is a function, see
 * `RateLimitStore.limit`.
 */
export function rateLimitStore(options: RateLimitStoreOptions): RateLimitStore {
  const { store, name = 'express-rate-limit' } = options
  if (typeof store?.decide !== 'function') {
    const expected = 'what memoryStore() or redisStore() returns'
    throw invalidOption('store', expected, store)
  }
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalidOption('name', 'up to 64 letters, digits, - or _', name)
  }
  return new HeadgateStore(store, name, options.subject)
}

/** A class, because messages of the middleware contain its name. */
class HeadgateStore implements RateLimitStore {
  readonly prefix: string
  readonly #store: Store
  readonly #name: string
  readonly #nameSubject: (subject: SubjectInput) => string
  /** Tells which hit is meant: the middleware names only the key, and a key may have many requests in flight. */
  readonly #current = new AsyncLocalStorage<Hit>()
  /** Whether hits are told apart at all, which slows down every promise of the process on Node before 24. */
  #followsHits = false
  #windowMs = 0
  #counting: HitCounting | null = null

  constructor(store: Store, name: string, subject: SubjectOptions | undefined) {
    this.prefix = `${name}:`
    this.#store = store
    this.#name = name
    this.#nameSubject = createSubjectNamer(subject)
    sharing.set(store, (sharing.get(store) ?? new Set()).add(this))
  }

  /** Whether nobody else counts the same keys. */
  get localKeys(): boolean {
    return this.#store.source === 'memory' && (sharing.get(this.#store)?.size ?? 0) <= 1
  }

  /** What it throws is logged by the middleware, which goes on. */
  init(options: Options): void {
    const { windowMs, counting, mistake } = parseOptions(options)
    this.#windowMs = windowMs
    this.#counting = counting
    this.#followsHits ||= options.skipFailedRequests || options.skipSuccessfulRequests
    if (mistake !== null) throw mistake
  }

  limit(limitOf: ValueDeterminingMiddleware<number>): ValueDeterminingMiddleware<number> {
    if (typeof limitOf !== 'function') throw invalidOption('limit', 'a function of the request', limitOf)
    this.#followsHits = true
    return async (request, response) => {
      const limit = await limitOf(request, response)
      const hit = this.#current.getStore()
      if (hit?.info && hit.info.totalHits > limit) await this.#deny(hit, hit.info, limit)
      return limit
    }
  }

  /** Takes a denied hit back, and says when the next one is admitted. */
  async #deny(hit: Hit, info: ClientRateLimitInfo, limit: number): Promise<void> {
    try {
      await this.#takeBack(hit)
      const counting = countUpTo(limit, this.#windowMs, EVERY_HIT)
      const counted = counting.read(await askStore(this.#store, this.#question(hit.key, counting), true))
      if (counted !== null && counted.totalHits > limit) info.resetTime?.setTime(this.#timeAfter(counted))
    } catch {
      // It stays denied, and counts.
    }
  }

  increment(key: string): Promise<ClientRateLimitInfo> {
    const hit: Hit = { key, charges: [], info: null, isTakenBack: false }
    // Before anything is awaited, so that it holds until the request has ended.
    if (this.#followsHits) this.#current.enterWith(hit)
    return this.#count(hit)
  }

  async #count(hit: Hit): Promise<ClientRateLimitInfo> {
    const question = this.#question(hit.key)
    const answer = await askStore(this.#store, question)
    const counted = await this.#read(answer)
    if (counted === null && answer.charged < 0) throw unavailable()
    hit.charges = chargesOf(question, answer)
    hit.info = this.#info(counted ?? { totalHits: 1, waitUs: this.#windowMs * 1_000 })
    return hit.info
  }

  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const counted = await this.#read(await askStore(this.#store, this.#question(key), true))
    return counted === null || counted.totalHits === 0 ? undefined : this.#info(counted)
  }

  async decrement(key: string): Promise<void> {
    const hit = this.#current.getStore()
    if (hit?.key === key) return this.#takeBack(hit)
    // Not for a request of the middleware: the key's oldest hit is as good as any.
    const [checks = []] = this.#question(key).alternatives
    await this.#store.refund(checks.map(check => ({ check, units: 1, chargedAtUs: null })))
  }

  async #takeBack(hit: Hit): Promise<void> {
    if (hit.isTakenBack) return
    hit.isTakenBack = true
    if (hit.charges.length > 0) await this.#store.refund(hit.charges)
  }

  async resetKey(key: string): Promise<void> {
    await this.#store.reset(this.#question(key).alternatives[0] ?? [])
  }

  /** Closes the store below when the last middleware on it is shut down. */
  async shutdown(): Promise<void> {
    const users = sharing.get(this.#store)
    if (users?.delete(this) && users.size === 0) await this.#store.close()
  }

  #question(key: string, counting = this.#counts()): Question {
    return checksOfRequest(counting, this.#name, this.#nameSubject(subjectOf(key)))
  }

  #counts(): HitCounting {
    if (this.#counting !== null) return this.#counting
    const expected = 'the store of a middleware, which tells it the limit'
    throw invalidOption('store', expected, 'a store that none has been made with')
  }

  async #read(answer: Answer): Promise<Counted | null> {
    const counting = this.#counts()
    if (!counting.isOpenEnded || answer.source !== 'local') return counting.read(answer)
    // While Redis is away this process has a share of each limit, all of which is left to somebody without hits.
    const whole = await askStore(this.#store, checksOfRequest(counting, this.#name, NOBODY, 0), true)
    return counting.read(
      answer,
      whole.verdicts[0]?.map(({ remaining }) => remaining),
    )
  }

  #info(counted: Counted): ClientRateLimitInfo {
    return { totalHits: counted.totalHits, resetTime: new Date(this.#timeAfter(counted)) }
  }

  #timeAfter({ waitUs }: Counted): number {
    return (this.#store.clock ?? systemClock).unixMs() + Math.ceil(waitUs / 1_000)
  }
}

function chargesOf({ alternatives }: Question, { charged, verdicts }: Answer): readonly Refund[] {
  const checks = alternatives[charged] ?? []
  return checks.flatMap((check, index) => {
    const chargedAtUs = verdicts[charged]?.[index]?.chargedAtUs ?? null
    return chargedAtUs === null ? [] : [{ check, units: 1, chargedAtUs }]
  })
}

/** Anything but an address may be an API key or a session, so it is stored only as a digest. */
function subjectOf(key: unknown): SubjectInput {
  if (key === undefined || key === null || key === '') return ANONYMOUS
  const id = String(key)
  if (IPV4.test(id)) return { type: 'ip', id }
  return { type: IPV6.test(id) ? 'network' : 'apikey', id }
}

/** Express answers with the status and headers of an error. */
function unavailable(): HeadgateError {
  const message = 'store: Redis does not answer, and the failure mode is closed'
  const error = new HeadgateError('ERR_HEADGATE_STORE_UNAVAILABLE', message)
  return Object.assign(error, { status: 503, headers: { 'Retry-After': '1' } })
}
