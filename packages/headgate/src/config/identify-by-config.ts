import { readFileSync } from 'node:fs'
import { unexpected } from '../errors/headgate-error.js'
import type { Config } from '../policy/config.js'
import { createIdentify, type Identify, type IdentifyOptions } from '../subject/identify.js'
import { jwt } from '../subject/jwt.js'
import type { SubjectSource } from '../subject/source.js'
import type { JwtSourceConfig, SourceConfig } from '../subject/source-config.js'
import { apiKey, fingerprint, internal, ip, session, tenant, user } from '../subject/sources.js'
import { foldType } from '../subject/subject-type.js'

const HEADER_SOURCES = { user, tenant, internal }

/** Of the usual order, services, keys, users, sessions, addresses, those that need nothing said about whom to believe. */
const DEFAULT_SOURCES: readonly SourceConfig[] = [{ source: 'apikey' }, { source: 'ip' }]

/**
 * Makes what `identify` of a policy file stands for: without it, the API keys it names in `subjects`, then the client's
 * address. Reads the files it names. Where it verifies tokens, await its `ready()`: the package `jose` is loaded meanwhile.
 */
export function identifyByConfig(config: Config, { tierOf }: Pick<IdentifyOptions, 'tierOf'> = {}): Identify {
  const described = config.identify ?? DEFAULT_SOURCES
  const sources = described.map(source => toSource(source, config))
  return createIdentify({ sources, ...(tierOf && { tierOf }) })
}

function toSource(described: SourceConfig, config: Config): SubjectSource {
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
function knownIn({ subjects }: Config): (key: string) => object | null {
  const known = new Set<string>()
  for (const subject of subjects.keys()) {
    const colon = subject.indexOf(':')
    if (foldType(subject.slice(0, colon)) === 'apikey') known.add(subject.slice(colon + 1))
  }
  return key => (known.has(key) ? {} : null)
}

function jwtSource({ source: _, jwks, secretFile = '', ...options }: JwtSourceConfig): SubjectSource {
  return jwks === undefined
    ? jwt({ ...options, secret: readText('secretFile', secretFile).trim() })
    : jwt({ ...options, jwks: readKeySet(readText('jwks', jwks)) })
}

function readText(field: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const { code = 'an error' } = cause as { code?: string }
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', `identify jwt ${field}`, 'a file that can be read', code)
  }
}

function readKeySet(text: string): { keys: [] } {
  try {
    return JSON.parse(text)
  } catch {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'identify jwt jwks', 'a file of JSON', 'something else')
  }
}
