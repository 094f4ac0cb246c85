/** A limit in one line, `rateLimit({ limit: 100, window: '1m' })`: makes the limiter that any other options bring along. */
import type { Duration } from '../algorithms/durations.js'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { nearestName } from '../errors/nearest-name.js'
import { quoted, shownName } from '../errors/shown-text.js'
import { createLimiter } from '../limiter/limiter.js'
import type { Store } from '../store/store.js'
import type { Framework } from './enforce.js'
import type { AnyOptions, CommonOptions, LimiterOptions } from './options.js'

/** A limit written where it applies: by client address, unless `subject` or `identify` says otherwise. */
export interface InlineLimit<Native>
  extends CommonOptions<Native>,
    Pick<LimiterOptions<Native, string, string>, 'subject' | 'onStoreFailure'> {
  /** Requests that may pass in any `window`: counted one by one up to 1,000, above that by a sliding counter. */
  readonly limit: number
  /** A bare number is seconds. */
  readonly window: Duration
  /**
   * Names the limit in headers, and in the `store`: those of one name share a budget, and must have the same numbers.
   * Default: the route it is for, where the framework knows it, else `default`.
   */
  readonly name?: string
  /** Where the limit is kept. Default: in this process, with a budget of its own. */
  readonly store?: Store
  readonly limiter?: undefined
  readonly policy?: undefined
  readonly tier?: undefined
}

/** Above it, a log of every request takes more memory than its exactness is worth. */
const MAX_LOGGED = 1_000
const DEFAULT_NAME = 'default'

/** What options of other libraries are called here. */
const OF_OTHERS: ReadonlyMap<string, string> = new Map([
  ['allowList', 'skip'],
  ['errorResponseBuilder', 'body'],
  ['handler', 'body'],
  ['keyGenerator', 'subject'],
  ['legacyHeaders', 'headers'],
  ['max', 'limit'],
  ['message', 'body'],
  ['points', 'limit'],
  ['skipFailedRequests', 'refundIf'],
  ['skipSuccessfulRequests', 'refundIf'],
  ['standardHeaders', 'headers'],
  ['timeWindow', 'window'],
  ['ttl', 'window'],
  ['windowMs', 'window'],
])

/**
 * Returns the options of a limiter: those given, or those of the limit they describe. `place` is the route that the
 * options were written for, where it is known by now.
 */
export function limiterOptions<Native>(
  options: AnyOptions<Native>,
  { standsOn }: Pick<Framework<Native>, 'standsOn'>,
  place?: string,
): LimiterOptions<Native, string, string> {
  if (typeof options !== 'object' || options === null)
    throw invalidOption('options', 'an object with a limiter, or a limit', options)
  rejectOthers(options)
  if (!isInline(options)) return options
  const { limit, window, name, store, ...others } = options
  const beside = (['limiter', 'policy', 'tier'] as const).find(other => others[other] !== undefined)
  if (beside !== undefined) throw invalidOption(beside, 'none beside a limit', others[beside])
  rejectMisspelt(options)
  const counted =
    limit > MAX_LOGGED ? slidingWindowCounter({ limit, window }) : slidingWindowLog({ limit, window })
  const policy = name ?? DEFAULT_NAME
  const limiter = createLimiter({ policies: { [policy]: counted }, ...(store && { store }) })
  if (store !== undefined) {
    const ofScope = typeof others.scope === 'string' ? ` ${others.scope}` : ''
    claim(store, (name ?? place ?? DEFAULT_NAME) + ofScope, `${limit} per ${window}`)
  }
  const isOfRoute =
    store !== undefined && name === undefined && others.scope === undefined && !others.perRoute
  const scope = isOfRoute ? (place ?? standsOn) : undefined
  return { ...others, ...(scope !== undefined && { scope }), limiter, policy } as LimiterOptions<
    Native,
    string,
    string
  >
}

/** Whether options describe a limit instead of bringing a limiter. */
export function isInline<Native>(options: Partial<AnyOptions<Native>>): options is InlineLimit<Native> {
  return 'limit' in options || 'window' in options
}

function rejectOthers(options: object): void {
  for (const name of Object.keys(options)) {
    const suggestion = OF_OTHERS.get(name)
    if (suggestion === undefined) continue
    const expected = `${suggestion}, as it is called here`
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: name,
      expected,
      got: quoted(name),
      suggestion,
    })
  }
}

/** A number that is missing may be there under a misspelt name. */
function rejectMisspelt(options: object): void {
  for (const missing of ['limit', 'window'].filter(name => !(name in options))) {
    const given = Object.keys(options).find(name => nearestName(name, [missing]) !== null)
    if (given === undefined) continue
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: shownName(given),
      expected: missing,
      got: quoted(given),
      suggestion: missing,
    })
  }
}

const claimed = new WeakMap<Store, Map<string, string>>()

/** Two limits that share a budget but not their numbers would each count what the other admits. */
function claim(store: Store, name: string, numbers: string): void {
  let names = claimed.get(store)
  if (names === undefined) {
    names = new Map()
    claimed.set(store, names)
  }
  const known = names.get(name)
  if (known === undefined) names.set(name, numbers)
  else if (known !== numbers)
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'name',
      expected: `another one, because ${quoted(name)} is ${known} in the same store`,
      got: `${quoted(name)} for ${numbers}`,
    })
}
