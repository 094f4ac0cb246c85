/**
 * A household or a rented server has 256 or 65,536 networks of /64, each of which would have a budget of its own.
 * So an IPv6 caller is also charged to wider networks, whose limits are a few times its own: enough for the
 * neighbours that may share them, but not an endless supply of fresh callers.
 */
import type { Limit } from '../algorithms/algorithm.js'
import type { Check } from '../check/check.js'
import type { Question } from '../check/plans.js'
import { invalidOption } from '../errors/headgate-error.js'
import { wholeNumber } from '../errors/whole-number.js'
import type { Ipv6Networks } from '../subject/subject.js'
import { CALLER_BITS, isIPv6Caller, networkAround, WIDEST_BITS } from '../subject/subject.js'
import type { PolicyLimit } from './policies.js'
import { isShared, widerLimit } from './wider-limit.js'

export const DEFAULT_IPV6_NETWORKS: Ipv6Networks = Object.freeze({ '/56': 4, '/48': 16 })

/** All callers of a network of `bits` together have `times` a caller's limit. */
interface WiderNetwork {
  readonly bits: number
  readonly times: number
}

const MAX_TIMES = 2 ** (CALLER_BITS - WIDEST_BITS)
const FORMS = "off, or a map of networks such as { '/56': 4, '/48': 16 }"

/** Adds the budgets of the networks around IPv6 callers to questions. */
export class Ipv6Budgets {
  readonly #networks: readonly WiderNetwork[]
  readonly #isExempt: (subject: string) => boolean

  /** Callers whose limits were set for them alone are exempt: their use must not count against their neighbours. */
  constructor(networks: Ipv6Networks | undefined, isExempt: (subject: string) => boolean = () => false) {
    this.#networks = parseNetworks(networks)
    this.#isExempt = isExempt
  }

  /** Returns the list with the checks of the networks around each caller added, or the same list if there are none. */
  widen(list: Question): Question {
    const { alternatives, shadow, onStoreFailure } = list
    if (!alternatives.some(checks => checks.some(this.#hasWider)) && !shadow.some(this.#hasWider)) return list
    return {
      alternatives: alternatives.map(checks => this.#widenAll(checks)),
      shadow: this.#widenAll(shadow),
      onStoreFailure,
    }
  }

  /** Whether a subject is charged to the networks around it, too. */
  isWidened(subject: string): boolean {
    return this.#isWidened(subject)
  }

  /** Returns the networks around a caller, each with its limits. */
  around(subject: string, limits: readonly PolicyLimit[]): readonly { network: string; limits: Limit[] }[] {
    if (!this.#isWidened(subject)) return []
    return this.#networks.map(({ bits, times }) => ({
      network: networkAround(subject, bits),
      limits: limits.filter(isShared).map(({ limit }) => widerLimit(limit, times)),
    }))
  }

  readonly #hasWider = ({ subject }: Check): boolean => this.#isWidened(subject)

  #isWidened(subject: string): boolean {
    return isIPv6Caller(subject) && this.#networks.length > 0 && !this.#isExempt(subject)
  }

  #widenAll(checks: readonly Check[]): readonly Check[] {
    if (!checks.some(this.#hasWider)) return checks
    return [...checks, ...checks.flatMap(check => this.#around(check))]
  }

  #around(check: Check): Check[] {
    const { subject, scope, name, limit, cost } = check
    if (!this.#isWidened(subject) || !isShared(check)) return []
    return this.#networks.map(({ bits, times }) => ({
      subject: networkAround(subject, bits),
      scope,
      name: `${name}/${bits}`,
      limit: widerLimit(limit, times),
      cost,
    }))
  }
}

/** Sorted from the narrowest to the widest. */
function parseNetworks(value: unknown = DEFAULT_IPV6_NETWORKS): readonly WiderNetwork[] {
  if (value === 'off') return []
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw rejection(FORMS, value)
  return Object.entries(value)
    .map(([size, times]) => ({
      bits: parseSize(size),
      times: wholeNumber(times, `ipv6Networks.${size}`, 1, MAX_TIMES),
    }))
    .sort((one, other) => other.bits - one.bits)
}

function parseSize(size: string): number {
  const bits = /^\/\d\d$/.test(size) ? Number(size.slice(1)) : Number.NaN
  if (bits >= WIDEST_BITS && bits < CALLER_BITS) return bits
  throw rejection(`sizes from /${WIDEST_BITS} to /${CALLER_BITS - 1}`, size)
}

function rejection(expected: string, got: unknown): Error {
  return invalidOption('ipv6Networks', expected, got)
}
