import type { ClientAddressOptions, ForwardedHeader, TrustedProxies } from './client-address.js'
import { createIdentify, type Identify, type IdentifyOptions } from './identify.js'
import type { JwtSourceConfig, SourceConfig } from './source-config.js'
import { apiKey, fingerprint, internal, ip, type SubjectSource, session, tenant, user } from './sources.js'
import { foldType } from './subject.js'

/** The parts of a policy file that identify callers. */
export interface CallerConfig {
  readonly identify: readonly SourceConfig[] | null
  readonly subjects: ReadonlyMap<string, unknown>
  readonly trustedProxies: TrustedProxies
  readonly forwardedHeader: ForwardedHeader
}

const HEADER_SOURCES = { user, tenant }

/**
 * The usual order is services, keys, users, sessions, addresses. By default only those two apply that need no
 * decision about whom to trust.
 */
const DEFAULT_SOURCES: readonly SourceConfig[] = [{ source: 'apikey' }, { source: 'ip' }]

/**
 * Creates the source of verified tokens. Passed in, because it needs files and the `jose` package, which not
 * everybody has.
 */
export type JwtSourceOf = (described: JwtSourceConfig) => SubjectSource

/**
 * Creates the identification that a policy file describes. Without an `identify` section: the API keys listed
 * in `subjects`, then the address.
 */
export function identifyBySources(
  config: CallerConfig,
  jwtSource: JwtSourceOf,
  { tierOf }: Pick<IdentifyOptions, 'tierOf'> = {},
): Identify {
  const described = config.identify ?? DEFAULT_SOURCES
  const sources = described.map(source => toSource(source, config, jwtSource))
  const address = ip(addressOptionsOf(config))
  return createIdentify({ sources, address, ...(tierOf && { tierOf }) })
}

function toSource(described: SourceConfig, config: CallerConfig, jwtSource: JwtSourceOf): SubjectSource {
  const addressOptions = addressOptionsOf(config)
  switch (described.source) {
    case 'ip': {
      const { source: _, ...options } = described
      return ip({ ...options, ...addressOptions })
    }
    case 'apikey': {
      const { source: _, ...options } = described
      return apiKey(options.unverified ? options : { ...options, lookUp: knownIn(config) })
    }
    case 'session':
      return session(described)
    case 'fingerprint': {
      const { source: _, ...options } = described
      return fingerprint({ ...options, ...addressOptions })
    }
    case 'internal': {
      const { source: _, ...options } = described
      return internal({ ...options, ...addressOptions })
    }
    case 'jwt':
      return jwtSource(described)
    default:
      return HEADER_SOURCES[described.source](described)
  }
}

/** How a file finds the client's address. One that trusts nobody leaves it to the setting of the framework, if there is any. */
export function addressOptionsOf({
  trustedProxies,
  forwardedHeader,
}: Pick<CallerConfig, 'trustedProxies' | 'forwardedHeader'>): ClientAddressOptions {
  const isUnset = Array.isArray(trustedProxies) && trustedProxies.length === 0
  return { forwardedHeader, ...(!isUnset && { trustedProxies }) }
}

/** Accepts the keys listed among the file's subjects; the rules find their tiers there. */
function knownIn({ subjects }: CallerConfig): (key: string) => object | null {
  const known = new Set<string>()
  for (const subject of subjects.keys()) {
    const colon = subject.indexOf(':')
    if (foldType(subject.slice(0, colon)) === 'apikey') known.add(subject.slice(colon + 1))
  }
  return key => (known.has(key) ? {} : null)
}
