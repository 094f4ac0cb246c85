/** What callers have of their quotas: credits are added, and what was used is told. */
import type { Usage } from '../algorithms/algorithm.js'
import type { Check } from '../check/check.js'
import { parseCost } from '../check/check-options.js'
import { policyOf } from '../decision/decision.js'
import { HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import type { Store } from '../store/store.js'

/** How units are credited. */
export interface CreditOptions {
  /** The same id credits once in 7 days, so that a credit can be tried again. Up to 64 letters, digits and `. _ : @ -`. */
  readonly id: string
  /** `period`: what is not used ends with the period. Default `never`. */
  readonly expires?: 'never' | 'period'
}

/** What was used of one quota of a subject. */
export interface QuotaUsage extends Usage {
  readonly policy: string
  /** The limit's id: `quota-month`. */
  readonly quota: string
  readonly scope: string
}

/** The quotas of a subject after a credit, and whether it was added: not if its id was known. */
export interface CreditAnswer {
  readonly added: boolean
  readonly quotas: readonly QuotaUsage[]
}

/** How long an id is remembered: 7 days. */
const ID_MS = 7 * 86_400_000
const ID = /^[\w.:@-]{1,64}$/

/** Rejects options of a credit that are none, and returns what they say. */
export function parseCredit(
  units: unknown,
  options: CreditOptions & object,
): Required<CreditOptions> & { units: number } {
  rejectUnknown(options, ['policy', 'tier', 'scope', 'id', 'expires'])
  const { id, expires = 'never' } = options
  if (units === 0) throw invalid('units', 'a whole number above 0', units)
  if (typeof id !== 'string' || !ID.test(id))
    throw invalid('id', 'up to 64 letters, digits, . _ : @ or -', id)
  if (expires !== 'never' && expires !== 'period') throw invalid('expires', "'never' or 'period'", expires)
  return { units: parseCost(units, 'units'), id, expires }
}

function invalid(field: string, expected: string, got: unknown): HeadgateError {
  return invalidOption(field, expected, got)
}

/** Adds units to all quotas among these states. */
export async function creditAll(
  store: Store,
  states: readonly Check[],
  asked: { readonly policy?: string | undefined; readonly tier?: string | undefined },
  { units, id, expires }: Required<CreditOptions> & { units: number },
): Promise<CreditAnswer> {
  const quotas = states.filter(isQuota)
  if (quotas.length === 0) {
    const field = asked.policy === undefined ? 'tier' : 'policy'
    throw invalid(field, `a ${field} that has a quota`, asked[field])
  }
  if (store.credit === undefined) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', `store: ${store.source} keeps no credits`)
  }
  const credited = []
  // One after the other: what fails can be tried again with the same id.
  for (const check of quotas) {
    credited.push({
      check,
      ...(await store.credit({ check, units, id, idForMs: ID_MS, isLasting: expires === 'never' })),
    })
  }
  return {
    added: credited.some(({ isAdded }) => isAdded),
    quotas: credited.map(({ check, usage }) => told(check, usage)),
  }
}

/** What was used of all quotas among these states. */
export async function usageOf(store: Store, states: readonly Check[]): Promise<readonly QuotaUsage[]> {
  const quotas = store.credit === undefined ? [] : states.filter(isQuota)
  return Promise.all(
    quotas.map(async check => {
      const looked = await store.credit?.({ check, units: 0, id: '', idForMs: 0, isLasting: true })
      return told(check, looked?.usage as Usage)
    }),
  )
}

function isQuota({ limit }: Check): boolean {
  return limit.algorithm.account !== undefined
}

function told({ name, limit, scope }: Check, usage: Usage): QuotaUsage {
  return { policy: policyOf(name), quota: limit.id, scope, ...usage }
}
