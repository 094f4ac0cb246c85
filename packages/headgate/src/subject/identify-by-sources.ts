import type { ForwardedHeader } from './client-address.js'
import { createIdentify, type Identify, type IdentifyOptions } from './identify.js'
import type { SubjectSource } from './source.js'
import type { JwtSourceConfig, SourceConfig } from './source-config.js'
import { apiKey, fingerprint, internal, ip, session, tenant, user } from './sources.js'
import { foldType } from './subject-type.js'
import type { TrustedProxies } from './trusted-proxies.js'

/** The parts of a policy file that say who is asking. */
export interface CallerConfig {
  readonly identify: readonly SourceConfig[] | null
  readonly subjects: ReadonlyMap<string, unknown>
  readonly trustedProxies: TrustedProxies
  readonly forwardedHeader: ForwardedHeader
}

const HEADER_SOURCES = { user, tenant, internal }

/** Of the usual order, services, keys, users, sessions, addresses, those that need nothing said about whom to believe. */
const DEFAULT_SOURCES: readonly SourceConfig[] = [{ source: 'apikey' }, { source: 'ip' }]

/** Makes the source of verified tokens, which needs files and a package: not everybody has them. */
export type JwtSourceOf = (described: JwtSourceConfig) => SubjectSource

/** Makes what `identify` of a policy file stands for: without it, the API keys it names in `subjects`, then the address. */
export function identifyBySources(
  config: CallerConfig,
  jwtSource: JwtSourceOf,
  { tierOf }: Pick<IdentifyOptions, 'tierOf'> = {},
): Identify {
  const described = config.identify ?? DEFAULT_SOURCES
  const sources = described.map(source => toSource(source, config, jwtSource))
  return createIdentify({ sources, ...(tierOf && { tierOf }) })
}

function toSource(described: SourceConfig, config: CallerConfig, jwtSource: JwtSourceOf): SubjectSource {
  const { trustedProxies, forwardedHeader } = config
  switch (described.source) {
    case 'ip': {
      const { source: _, ...options } = described
      return ip({ ...options, trustedProxies, forwardedHeader })
    }
    case 'apikey': {
      const { source: _, ...options } = described
      return apiKey(options.unverified ? options : { ...options, lookUp: knownIn(config) })
    }
    case 'session':
      return session(described)
    case 'fingerprint': {
      const { source: _, ...options } = described
      return fingerprint({ ...options, trustedProxies, forwardedHeader })
    }
    case 'jwt':
      return jwtSource(described)
    default:
      return HEADER_SOURCES[described.source](described)
  }
}

/** The keys that the file names among its subjects; their tiers are for the rules to find there. */
function knownIn({ subjects }: CallerConfig): (key: string) => object | null {
  const known = new Set<string>()
  for (const subject of subjects.keys()) {
    const colon = subject.indexOf(':')
    if (foldType(subject.slice(0, colon)) === 'apikey') known.add(subject.slice(colon + 1))
  }
  return key => (known.has(key) ? {} : null)
}
