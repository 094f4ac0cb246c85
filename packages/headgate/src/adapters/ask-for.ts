/** Asks a limiter on behalf of a request. */
import type { Decision } from '../decision/decision.js'
import { claimedMethods } from '../policy/claimed-methods.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { Eventually } from '../store/store.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { ChargeKey } from './charged-once.js'
import type { Found } from './look-up.js'
import { type AnyOptions, rulesOf } from './options.js'

/** Creates the function that describes a charge, so that a repeated one is recognised: the limiter, and what it is asked. */
export function createChargeKeyOf<Native>({
  limiter,
  policy,
}: AnyOptions<Native>): (found: Found) => ChargeKey {
  return ({ subject, tier, scope, cost, also }) => ({
    asked: limiter,
    policy,
    subject,
    tier,
    scope,
    cost,
    also,
  })
}

/** Creates the function that asks. It answers synchronously if the process already knows the answer. */
export function createAsk<Native>(
  options: AnyOptions<Native>,
  read: (native: Native) => HttpRequest,
): (native: Native, found: Found) => Eventually<Decision> {
  const rules = rulesOf(options)
  if (rules === null) return createAskByName(options)
  return function askByRules(native, found) {
    return rules.requestNow(factsOf(read(native), found))
  }
}

function createAskByName<Native>({
  limiter,
  policy,
  onStoreFailure,
}: AnyOptions<Native>): (native: Native, found: Found) => Eventually<Decision> {
  const mode = onStoreFailure === undefined ? {} : { onStoreFailure }
  const plain = policy === undefined ? null : { policy, ...mode }
  return function askByName(_, { subject, tier, cost, scope, also: others, perAddress }) {
    const [caller] = Array.isArray(subject) ? subject : [subject]
    const isPlain = cost === undefined && scope === undefined && others === undefined
    if (plain !== null && isPlain && perAddress === undefined) return limiter.checkNow(caller, plain)
    const asked = policy === undefined ? { tier: tier as string } : { policy }
    const minted = perAddress?.minted.find(one => one.subject === caller)
    const also =
      perAddress === undefined || minted === undefined
        ? others
        : [...(others ?? []), { subject: perAddress.address, times: minted.times, ...asked }]
    return limiter.checkNow(caller, {
      ...asked,
      ...mode,
      ...(scope !== undefined && { scope }),
      ...(cost !== undefined && { cost }),
      ...(also !== undefined && { also }),
    })
  }
}

function factsOf(request: HttpRequest, { subject, tier, cost, scope, perAddress }: Found): RequestFacts {
  const { method, url } = request
  const claimed = claimedMethods(name => request.similarHeaders?.(name) ?? request.header(name), url)
  return {
    subject,
    method,
    path: url,
    ...(claimed.length > 0 && { claimedMethods: claimed }),
    ...(tier !== undefined && { tier }),
    ...(cost !== undefined && { cost }),
    ...(scope !== undefined && { scope }),
    ...(perAddress !== undefined && { perAddress }),
  }
}
