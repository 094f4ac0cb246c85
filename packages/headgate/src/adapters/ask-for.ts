/** Asks a limiter or a gate on behalf of a request. */
import type { Decision } from '../decision/decision.js'
import { claimedMethods } from '../policy/claimed-methods.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { Eventually } from '../store/store.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { ChargeKey } from './charged-once.js'
import type { Found } from './look-up.js'
import type { AnyOptions, LimiterOptions } from './options.js'

/**
 * Creates the function that describes a charge, so that a repeated one is recognised: the limiter or gate asked,
 * and the question.
 */
export function createChargeKeyOf<Native>(options: AnyOptions<Native>): (found: Found) => ChargeKey {
  const asked = options.gate ?? options.limiter
  const policy = options.gate === undefined ? options.policy : undefined
  return ({ subject, tier, scope, cost, also }) => ({
    asked: asked as object,
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
  const { gate } = options
  if (gate === undefined) return createAskLimiter(options as LimiterOptions<Native, string, string>)
  return function askGate(native, found) {
    return gate.requestNow(factsOf(read(native), found))
  }
}

function createAskLimiter<Native>({
  limiter,
  policy,
  onStoreFailure,
}: LimiterOptions<Native, string, string>): (native: Native, found: Found) => Eventually<Decision> {
  const mode = onStoreFailure === undefined ? {} : { onStoreFailure }
  const plain = policy === undefined ? null : { policy, ...mode }
  return function askLimiter(_, { subject, tier, cost, scope, also: others, perAddress }) {
    const isPlain = cost === undefined && scope === undefined && others === undefined
    if (plain !== null && isPlain && perAddress === undefined)
      return limiter.checkNow(subject as `${string}:${string}`, plain)
    const asked = policy === undefined ? { tier: tier as string } : { policy }
    const minted = perAddress?.minted.find(one => one.subject === subject)
    const also =
      perAddress === undefined || minted === undefined
        ? others
        : [...(others ?? []), { subject: perAddress.address, times: minted.times, ...asked }]
    return limiter.checkNow(subject as `${string}:${string}`, {
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
