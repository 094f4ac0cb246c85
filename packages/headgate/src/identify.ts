export { identifyByConfig } from './config/identify-by-config.js'
export type { HttpRequest } from './subject/http-request.js'
export type { Identify, IdentifyOptions, Identity, PerAddress, Within } from './subject/identify.js'
export { createIdentify } from './subject/identify.js'
export type { JwtOptions } from './subject/jwt.js'
export { jwt } from './subject/jwt.js'
export type {
  ApiKeyOptions,
  FingerprintOptions,
  HeaderSourceOptions,
  Identified,
  InternalOptions,
  KeyLookup,
  KeyOwner,
  PerAddressTimes,
  SecretOptions,
  SessionOptions,
  SubjectSource,
  TrustedPeers,
} from './subject/sources.js'
export { apiKey, custom, fingerprint, internal, ip, session, tenant, user } from './subject/sources.js'
