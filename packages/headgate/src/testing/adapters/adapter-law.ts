import type { RateLimitOptions } from '../../adapters/options.js'
import { createLimiter, type Limiter } from '../../limiter/limiter.js'
import { slidingWindowLog } from '../../policy/limits.js'

/** Options of `rateLimit` whose functions look at no request, so that they suit every framework. */
export type AnyLimit = RateLimitOptions<unknown, string, string>

/** The behaviour of the server under test. */
export interface AppUnderTest {
  /** One `rateLimit` for each, from the outside in, around everything the app answers. */
  readonly limits: readonly AnyLimit[]
  /** Whether the limits are those of each route, or of the app, where they see what matches no route, too. */
  readonly limited: 'app' | 'routes'
  /** Whether the head of a response is sent before the limits are asked. */
  readonly beginsEarly: boolean
  /** Told by the handler which body a request had; returns what it answers. */
  handle(body: string): string
}

export interface ServerUnderTest {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string
  close(): Promise<void>
}

/** An adapter to be held to the contract. */
export interface AdapterUnderTest {
  /**
   * Starts a server that answers any method on `/hello` and `/items/:id` with 200, the header `X-Own: yes` and what
   * `handle` returns for the body it read, and everything else with 404.
   */
  serve(app: AppUnderTest): Promise<ServerUnderTest>
  /** Whether `subject` may be left out: the connection's address is known. */
  readonly knowsPeer: boolean
  /** Whether the limits of a route know which it is, so that `perRoute` has something to go by. */
  readonly knowsRoute: boolean
  /** Whether only requests that match a route come to the limits. */
  readonly onRoutesOnly?: boolean
  /** Whether a response can be begun before the limits are asked. */
  readonly canBeginEarly: boolean
}

/** One thing every adapter must do. `run` rejects with a message that says what was expected and what came. */
export interface AdapterLaw {
  readonly name: string
  /** Whether it says anything about such an adapter. */
  applies?(adapter: AdapterUnderTest): boolean
  run(bench: AdapterBench): Promise<void>
}

/** The things a law works with. */
export interface AdapterBench {
  readonly adapter: AdapterUnderTest
  /** Starts a server with these limits, for as long as the law runs. */
  serve(...limits: readonly AnyLimit[]): Promise<Served>
  /** The same with the limits on each route. */
  serveRoutes(...limits: readonly AnyLimit[]): Promise<Served>
  /** The same with responses that have begun before. */
  serveEarly(...limits: readonly AnyLimit[]): Promise<Served>
}

export interface Served {
  readonly url: string
  /** Bodies that reached the handler. */
  readonly handled: readonly string[]
}

export const SUBJECT = 'user:1' as const

/** So many in a minute, as the policy `api`. */
export function limiterOf(limit: number): Limiter<'api', never> {
  return createLimiter({ policies: { api: slidingWindowLog({ limit, window: '1m' }) } })
}

/** Options for so many in a minute, charged to one user. */
export function limitOf(limit: number, more: Partial<AnyLimit> = {}): AnyLimit {
  return { limiter: limiterOf(limit), policy: 'api', subject: SUBJECT, ...more } as AnyLimit
}
