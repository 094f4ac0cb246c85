import { type NextFetchEvent, type NextRequest, NextResponse } from 'next/server.js'
import type { Framework } from './enforce.js'
import { createLimitHandler, FetchRequest, type Handler } from './fetch.js'
import type { InlineLimit } from './inline-limit.js'
import type { AnyOptions, NamesCaller, RateLimitOptions } from './options.js'

/** Next.js does not reveal the peer of a request, so `subject` or `identify` is required. */
export type NextOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  NextRequest,
  PolicyName,
  TierName
> &
  NamesCaller

const framework: Framework<NextRequest> = {
  knowsPeer: false,
  // The path as the router sees it: without base path, locale and the marks of the router's own requests.
  read: request => new FetchRequest(request, request.nextUrl.pathname + request.nextUrl.search),
  origin: request => request,
}

/**
 * Creates the `proxy` of `proxy.ts` (`middleware` of `middleware.ts`) that limits a Next.js app. Without `skip`, static
 * assets pass. Which requests a proxy sees depends on Next.js's routing: protect critical handlers with `withRateLimit`
 * as well.
 *
 * @example
 * export const proxy = rateLimit({ limiter, policy: 'api', subject })
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: NextOptions<PolicyName, TierName>,
): (request: NextRequest, event?: NextFetchEvent) => Promise<Response> {
  const skip = options.skip ?? isStaticAsset
  return createLimitHandler(
    { ...options, skip } as AnyOptions<NextRequest>,
    framework,
  )((_request: NextRequest, _event?: NextFetchEvent) => NextResponse.next())
}

/** A limit beside the handler it is for; `tier` is another word for its `name`. */
export type HandlerLimit = Omit<InlineLimit<NextRequest>, 'tier'> & { readonly tier?: string } & NamesCaller

/**
 * Limits a route handler, by a limiter or a limit written beside it.
 *
 * @example
 * export const GET = withRateLimit(getStructure, { limit: 50, window: 60, scope: 'pdb-fetch', subject })
 */
export function withRateLimit<
  Rest extends readonly unknown[],
  PolicyName extends string,
  TierName extends string,
>(
  handler: Handler<NextRequest, Rest>,
  options: NextOptions<PolicyName, TierName> | HandlerLimit,
): (request: NextRequest, ...rest: Rest) => Promise<Response> {
  const { limit, tier, ...others } = (options ?? {}) as HandlerLimit
  const given = limit === undefined || tier === undefined ? options : { name: tier, ...others, limit }
  return createLimitHandler(given as AnyOptions<NextRequest>, framework)(handler)
}

/** Extensions of static files. `.rsc`, `.json` and the like are missing on purpose: those are pages and data. */
const FILE =
  /\.(?:avif|css|eot|gif|ico|jpe?g|js|map|mjs|mp[34]|otf|png|svg|ttf|txt|webm|webmanifest|webp|woff2?|xml)$/i

/** Whether a request is for a static asset: a build output of Next.js, or a path with a file's extension. */
export function isStaticAsset({ method, nextUrl: { pathname } }: NextRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (pathname.startsWith('/_next/')) return !pathname.startsWith('/_next/data/')
  return FILE.test(pathname)
}
