export { identifyByConfig } from './config/identify-by-config.js'
export type { HttpRequest } from './subject/http-request.js'
export type { Identify, IdentifyOptions, Identity, PerAddress, Within } from './subject/identify.js'
export { createIdentify } from './subject/identify.js'
export type { JwtOptions } from './subject/jwt.js'
export { jwt } from './subject/jwt.js'
export type {
  ApiKeyOptions,
  BelievedPeers,
  Finding,
  FingerprintOptions,
  HeaderSourceOptions,
  InternalOptions,
  Known,
  LookUp,
  PerAddressTimes,
  SecretOptions,
  SessionOptions,
  SubjectSource,
} from './subject/sources.js'
export { apiKey, custom, fingerprint, internal, ip, session, tenant, user } from './subject/sources.js'
