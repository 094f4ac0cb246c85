import type { RateLimitOptions } from '../../adapters/options.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { createLimiter, type Limiter } from '../../limiter/limiter.js'

/** Options of `rateLimit` whose functions ignore the request, so that they suit every framework. */
export type AnyLimit = RateLimitOptions<unknown, string, string>

/** The app that the server under test runs. */
export interface AppUnderTest {
  /** The limits around everything the app answers, from the outside in; one `rateLimit` each. */
  readonly limits: readonly AnyLimit[]
  /** Whether the limits belong to each route, or to the app, where they also see unmatched requests. */
  readonly limited: 'app' | 'routes'
  /** Whether the head of a response is sent before the limits are asked. */
  readonly beginsEarly: boolean
  /** Called by the handler with the body of a request; returns the answer. */
  handle(body: string): string
}

export interface ServerUnderTest {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string
  close(): Promise<void>
}

/** An adapter to be tested against the contract. */
export interface AdapterUnderTest {
  /**
   * Starts a server that answers any method on `/hello` and `/items/:id` with 200, the header `X-Own: yes` and what
   * `handle` returns for the body, and everything else with 404.
   */
  serve(app: AppUnderTest): Promise<ServerUnderTest>
  /** Whether `subject` may be left out, because the address of the connection is known. */
  readonly knowsPeer: boolean
  /** Whether the limits of a route know which route it is, as `perRoute` requires. */
  readonly knowsRoute: boolean
  /** Whether only requests that match a route reach the limits. */
  readonly onRoutesOnly?: boolean
  /** Whether a response can begin before the limits are asked. */
  readonly canBeginEarly: boolean
}

/** One requirement of every adapter. `run` rejects with a message that says what was expected and what came. */
export interface AdapterLaw {
  readonly name: string
  /** Whether it applies to such an adapter. */
  applies?(adapter: AdapterUnderTest): boolean
  run(bench: AdapterBench): Promise<void>
}

/** The tools of a law. */
export interface AdapterBench {
  readonly adapter: AdapterUnderTest
  /** Starts a server with these limits, for as long as the law runs. */
  serve(...limits: readonly AnyLimit[]): Promise<Served>
  /** The same with the limits on each route. */
  serveRoutes(...limits: readonly AnyLimit[]): Promise<Served>
  /** The same with responses that have already begun. */
  serveEarly(...limits: readonly AnyLimit[]): Promise<Served>
}

export interface Served {
  readonly url: string
  /** Bodies that reached the handler. */
  readonly handled: readonly string[]
}

export const SUBJECT = 'user:1' as const

/** Creates a limiter with a policy `api` of `limit` a minute. */
export function limiterOf(limit: number): Limiter<'api', never> {
  return createLimiter({ policies: { api: slidingWindowLog({ limit, window: '1m' }) } })
}

/** Returns options for `limit` a minute, charged to one user. */
export function limitOf(limit: number, more: Partial<AnyLimit> = {}): AnyLimit {
  return { limiter: limiterOf(limit), policy: 'api', subject: SUBJECT, ...more } as AnyLimit
}
