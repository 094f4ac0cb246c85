import { unexpected } from '../errors/headgate-error.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identify } from '../subject/identify.js'
import { identifyBySources } from '../subject/identify-by-sources.js'
import { ip } from '../subject/sources.js'
import type { SubjectInput } from '../subject/subject.js'
import type { Config } from './config.js'

/** Identifies callers by the policy file in force. */
export interface FileCallers {
  /**
   * Identifies the caller by `identify`, `subjects` and `trustedProxies` of the file in force. Adapters use it
   * unless their options identify callers. Throws on access for a file that verifies tokens.
   */
  readonly identify: Identify
  /** Returns the client's address by `trustedProxies` of the file in force, as the subject that is charged. */
  addressOf(request: HttpRequest): SubjectInput
}

/** Creates the sources of a file on first use, so that a limiter whose subjects are passed in needs none. */
export function createFileCallers(inForce: () => Config) {
  let address: { readonly config: Config; readonly source: ReturnType<typeof ip> } | null = null
  let made: { readonly config: Config; readonly identify: Identify } | null = null
  function current(): Identify {
    const config = inForce()
    if (made?.config !== config) made = { config, identify: identifyBySources(config, refuseTokens) }
    return made.identify
  }
  const ask = (...asked: Parameters<Identify>) => current()(...asked)
  const identify: Identify = Object.assign(ask, { ready: async () => current().ready() })
  return {
    get identify() {
      current()
      return identify
    },
    addressOf(request: HttpRequest): SubjectInput {
      const config = inForce()
      const { trustedProxies, forwardedHeader } = config
      if (address?.config !== config) address = { config, source: ip({ trustedProxies, forwardedHeader }) }
      return address.source.find(request).subject
    },
    /** Throws for a file whose sources cannot be created, if they are in use. */
    refuseUnusable(next: Config): void {
      if (made !== null) identifyBySources(next, refuseTokens)
    },
  }
}

/** Verifying tokens needs a package that an app which bundles a limiter may not have. */
function refuseTokens(): never {
  const expected =
    'identifyByConfig(config) of headgate/identify beside the limiter, whose file verifies tokens'
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'identify', expected, undefined)
}
