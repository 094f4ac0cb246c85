import { unexpected } from '../errors/headgate-error.js'
import type { Config } from '../policy/config.js'
import type { Identify } from '../subject/identify.js'
import { identifyBySources } from '../subject/identify-by-sources.js'

/** Finds callers by the policy file in force. */
export interface FileCallers {
  /**
   * Finds out who is asking, by `identify`, `subjects` and `trustedProxies` of the file in force. Adapters use it unless
   * they are told who is asking. Throws when it is got for a file that verifies tokens.
   */
  readonly identify: Identify
}

/** Makes the sources of a file when somebody first asks, so that a gate which is told its subjects needs none. */
export function createFileCallers(inForce: () => Config) {
  let made: { readonly config: Config; readonly identify: Identify } | null = null
  function current(): Identify {
    const config = inForce()
    if (made?.config !== config) made = { config, identify: identifyBySources(config, refuseTokens) }
    return made.identify
  }
  const identify: Identify = Object.assign((request: Parameters<Identify>[0]) => current()(request), {
    ready: async () => current().ready(),
  })
  return {
    get identify() {
      current()
      return identify
    },
    /** Throws for a file whose sources cannot be made, where they are in use. */
    refuseUnusable(next: Config): void {
      if (made !== null) identifyBySources(next, refuseTokens)
    },
  }
}

/** Tokens are verified by a package, which an app that bundles a gate may not have. */
function refuseTokens(): never {
  const expected = 'identifyByConfig(config) of headgate/identify beside the gate, whose file verifies tokens'
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'identify', expected, undefined)
}
