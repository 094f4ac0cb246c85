import type { BelievedPeers } from './sources.js'

/** A source as a policy file describes it. */
export type SourceConfig =
  | { readonly source: 'ip'; readonly tier?: string }
  | {
      readonly source: 'user' | 'tenant' | 'internal'
      readonly header: string
      readonly from: BelievedPeers
      readonly tier?: string
    }
  | {
      readonly source: 'apikey'
      readonly header?: string
      readonly scheme?: string
      readonly unverified?: boolean
      readonly tier?: string
    }
  | {
      readonly source: 'session'
      readonly cookie: string
      readonly unverified: boolean
      readonly tier?: string
    }
  | { readonly source: 'fingerprint'; readonly headers?: readonly string[] }
  | JwtSourceConfig

/** A source of verified tokens. The keys are in files, never in the policy file itself. */
export interface JwtSourceConfig {
  readonly source: 'jwt'
  /** Path of a JSON Web Key Set. */
  readonly jwks?: string
  /** Path of a file that contains nothing but the secret. */
  readonly secretFile?: string
  readonly algorithms: readonly string[]
  readonly issuer: string
  readonly audience: string
  readonly header?: string
  readonly cookie?: string
  readonly claim?: string
  readonly type?: string
  readonly tenantClaim?: string
  readonly tierClaim?: string
  readonly clockToleranceSeconds?: number
}

/** Returns the subject types that a source may find. */
export function typesOf(config: SourceConfig): readonly string[] {
  if (config.source !== 'jwt') return [config.source]
  const type = config.type ?? 'user'
  return config.tenantClaim === undefined ? [type] : [type, 'tenant']
}
