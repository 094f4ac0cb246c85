import type { PerAddressTimes, TrustedPeers } from './sources.js'

/** What `perAddress` of a source is if it is left out. */
export const PER_ADDRESS = 10

/** A source as a policy file describes it. */
export type SourceConfig =
  | { readonly source: 'ip'; readonly tier?: string }
  | {
      readonly source: 'user' | 'tenant' | 'internal'
      readonly header: string
      readonly from: TrustedPeers
      readonly tier?: string
      readonly perAddress?: PerAddressTimes
    }
  | {
      readonly source: 'apikey'
      readonly header?: string
      readonly scheme?: string
      readonly unverified?: boolean
      readonly tier?: string
      readonly perAddress?: PerAddressTimes
    }
  | {
      readonly source: 'session'
      readonly cookie: string
      readonly unverified: boolean
      readonly tier?: string
      readonly perAddress?: PerAddressTimes
    }
  | {
      readonly source: 'fingerprint'
      readonly headers?: readonly string[]
      readonly perAddress?: PerAddressTimes
    }
  | JwtSourceConfig

/** Says which tokens are accepted, where they are, and which of their claims name the caller. */
export interface VerifiedClaims {
  /** The accepted algorithms, such as `['RS256']`. The token does not get to choose. */
  readonly algorithms: readonly string[]
  readonly issuer: string
  readonly audience: string
  /** The header the token is in. Default `authorization`, after `Bearer`. */
  readonly header?: string
  readonly cookie?: string
  /** The claim that identifies the caller. Default `sub`. */
  readonly claim?: string
  /** The type of the subject found. Default `user`. */
  readonly type?: string
  /** The claim that names the caller's organisation, which becomes an additional subject of type `tenant`. */
  readonly tenantClaim?: string
  /** The claim that names the caller's tier. */
  readonly tierClaim?: string
  /** The clock skew allowed between us and the issuer. Default 0. */
  readonly clockToleranceSeconds?: number
}

/** A source of verified tokens. The keys are in files, never in the policy file itself. */
export interface JwtSourceConfig extends VerifiedClaims {
  readonly source: 'jwt'
  /** Path of a JSON Web Key Set. */
  readonly jwks?: string
  /** Path of a file that contains nothing but the secret. */
  readonly secretFile?: string
}

/** Returns the subject types that a source may find. */
export function typesOf(config: SourceConfig): readonly string[] {
  if (config.source !== 'jwt') return [config.source]
  const type = config.type ?? 'user'
  return config.tenantClaim === undefined ? [type] : [type, 'tenant']
}

/**
 * Returns how many times one caller's limits an address has for all callers that a source finds, or `off`; null for a
 * source whose callers nobody can make up.
 */
export function perAddressOf(config: SourceConfig): PerAddressTimes | null {
  return isMintable(config) ? (config.perAddress ?? PER_ADDRESS) : null
}

function isMintable(
  config: SourceConfig,
): config is SourceConfig & { readonly perAddress?: PerAddressTimes } {
  switch (config.source) {
    case 'session':
    case 'fingerprint':
      return true
    case 'apikey':
      return config.unverified === true
    case 'ip':
    case 'jwt':
      return false
    default:
      return config.from === 'everybody'
  }
}
