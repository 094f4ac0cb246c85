import type { Duration } from '../algorithms/durations.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { unexpected } from '../errors/headgate-error.js'
import { createLimiter } from '../limiter/limiter.js'
import type { Store } from '../store/store.js'
import type { AnyOptions, CommonOptions, Of } from './options.js'

/** A limit written beside the one handler it is for. */
export interface InlineLimit<Native>
  extends Omit<CommonOptions<Native>, 'scope' | 'perRoute'>,
    Pick<AnyOptions<Native>, 'subject' | 'onStoreFailure'> {
  /** Requests that may pass in any `window`. */
  readonly limit: number
  /** A bare number is seconds. */
  readonly window: Duration
  /** The scope of the limit. Handlers that share a store and a scope share a budget. */
  readonly scope: Of<Native, string>
  /** The name of the limit in headers and rejections. Default `route`. */
  readonly tier?: string
  /** Where the limit is kept. Default: in this process. */
  readonly store?: Store
  readonly limiter?: undefined
}

const DEFAULT_NAME = 'route'

/** Replaces an inline limit by a limiter; returns any other options unchanged. */
export function toOptions<Native>(options: InlineLimit<Native> | AnyOptions<Native>): AnyOptions<Native> {
  if (!isInline(options)) return options
  const { limit, window, tier = DEFAULT_NAME, store, ...others } = options
  if (others.scope === undefined)
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'scope', 'a name for what is limited', others.scope)
  const limiter = createLimiter({
    policies: { [tier]: slidingWindowLog({ limit, window }) },
    ...(store && { store }),
  })
  return { ...others, limiter, policy: tier } as AnyOptions<Native>
}

function isInline<Native>(options: InlineLimit<Native> | AnyOptions<Native>): options is InlineLimit<Native> {
  return typeof options === 'object' && options !== null && 'limit' in options
}
