/**
 * The policies of a run. The leased ones have keys hot enough to be leased, and time enough for a lease to be lost.
 */
import type { Lease, Limit } from '../../src/algorithms/algorithm.ts'
import { concurrency } from '../../src/algorithms/concurrency.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import { activatePolicies } from '../../src/policy/active-policies.ts'
import { NORMAL } from '../../src/policy/control.ts'
import { type Policy, type PolicyLimit, writtenPolicies } from '../../src/policy/policies.ts'
import { redisKey } from '../../src/subject/key.ts'
import type { Dice } from './dice.ts'

const PLAIN = {
  log: slidingWindowLog({ limit: 12, window: '1s' }),
  counter: slidingWindowCounter({ limit: 20, window: '1s' }),
  buckets: slidingWindowCounter({ limit: 15, window: '1s', buckets: 10 }),
  bucket: tokenBucket({ capacity: 10, refillPerSecond: 20 }),
  both: [slidingWindowLog({ limit: 25, window: '2s' }), tokenBucket({ capacity: 12, refillPerSecond: 10 })],
} as const

const lease = { max: 24, ttl: '50ms' } as const
const LEASED = {
  leasedLog: { limits: slidingWindowLog({ limit: 80, window: '1s' }), lease },
  leasedCounter: { limits: slidingWindowCounter({ limit: 80, window: '1s' }), lease },
  leasedBuckets: { limits: slidingWindowCounter({ limit: 80, window: '1s', buckets: 20 }), lease },
  leasedBucket: {
    limits: tokenBucket({ capacity: 100, refillPerSecond: 50 }),
    lease: { max: 24, ttl: '100ms' },
  },
  leasedBoth: {
    limits: [
      slidingWindowLog({ limit: 150, window: '2s' }),
      tokenBucket({ capacity: 80, refillPerSecond: 40 }),
    ],
    lease: { max: 24, ttl: '100ms' },
  },
} as const

/** For long-running requests: permits that are held, and estimates that are settled afterwards. */
const LASTING = {
  permits: concurrency({ limit: 3, holdFor: '1s' }),
  estimated: slidingWindowLog({ limit: 60, window: '1s' }),
} as const

export const POLICIES = { ...PLAIN, ...LEASED, ...LASTING }
export type PlainPolicyName = keyof typeof PLAIN
export type LeasedPolicyName = keyof typeof LEASED
export type LastingPolicyName = keyof typeof LASTING
export type PolicyName = PlainPolicyName | LeasedPolicyName | LastingPolicyName
export const PLAIN_NAMES = Object.keys(PLAIN) as [PlainPolicyName, ...PlainPolicyName[]]
const LEASED_NAMES = Object.keys(LEASED) as [LeasedPolicyName, ...LeasedPolicyName[]]

const LASTING_NAMES = Object.keys(LASTING)

const NO_OVERRIDES = { size: 0, find: () => null, leftUs: () => 0 }
const { configuredPolicies } = activatePolicies(writtenPolicies(POLICIES, {}), {
  control: NORMAL,
  overrides: NO_OVERRIDES,
  defaultFailure: 'local',
})
const PARSED = new Map<string, Policy>([...configuredPolicies].map(([name, { policy }]) => [name, policy]))
const KEYS = new Map<string, readonly string[]>()

/** How requests travel in a run: what its seed decides besides the faults. */
export interface Shape {
  /** Whether requests of the same moment share a call. */
  readonly batch: boolean
  /** Policies whose hot keys are asked for; empty if nothing is leased. */
  readonly leased: readonly LeasedPolicyName[]
  /** Whether there are also long-running requests: with a permit, or settled when they end. */
  readonly lasting?: boolean
}

/** Every request is a call of its own, so that each call can be attributed to one request. */
export const ONE_CALL_EACH: Shape = { batch: false, leased: [] }

export function rollShape(dice: Dice): Shape {
  const batch = dice.chance(0.5)
  const leased = rollLeased(dice)
  return { batch, leased, lasting: dice.chance(0.3) }
}

function rollLeased(dice: Dice): readonly LeasedPolicyName[] {
  if (dice.chance(0.5)) return []
  const one = dice.pick(LEASED_NAMES)
  return dice.chance(0.7) ? [one] : [...new Set([one, dice.pick(LEASED_NAMES)])]
}

/** Whether a key belongs to a policy of long-running requests. */
export function isLasting(key: string): boolean {
  return LASTING_NAMES.some(name => key.includes(`:${name}.`))
}

/** Whether each call can be attributed to one request. */
export function isAttributable({ batch, leased }: Shape): boolean {
  return !batch && leased.length === 0
}

/** The limits that are asked: a leased one is made stricter by what its leases could let slip. */
export function limitsInForce(policy: PolicyName): readonly Limit[] {
  return namedLimits(policy).map(({ limit }) => limit)
}

/** The limits as configured, which is what is promised. */
export function limitsPromised(policy: PolicyName): readonly Limit[] {
  const options = POLICIES[policy]
  const limits: Limit | readonly Limit[] = 'limits' in options ? options.limits : options
  return 'algorithm' in limits ? [limits] : limits
}

export function leaseOf(policy: PolicyName): Lease | null {
  return limitsInForce(policy)[0]?.lease ?? null
}

/** The keys of a subject, in the order of the policy's limits. */
export function keysOf(policy: PolicyName, subject: string): readonly string[] {
  const known = KEYS.get(`${policy} ${subject}`)
  if (known !== undefined) return known
  const permit = { prefix: 'ratelimit', tenant: '', subject, scope: 'global' }
  const keys = namedLimits(policy).map(({ name }) => redisKey({ ...permit, name }))
  KEYS.set(`${policy} ${subject}`, keys)
  return keys
}

function namedLimits(policy: PolicyName): readonly PolicyLimit[] {
  return PARSED.get(policy)?.limits ?? []
}
