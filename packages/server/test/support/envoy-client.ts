/** Clients of Envoy's rate limit service, made from Envoy's own protos, or from ours where those are too old. */
import { fileURLToPath } from 'node:url'
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'

const DEPS = fileURLToPath(new URL('../../deps/', import.meta.resolve('@grpc/grpc-js-xds')))
const OPTIONS = { longs: Number, enums: String, defaults: true, oneofs: true, keepCase: true }
const METHOD_PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService'

/** Envoy's protos from a package on npm, which lack hits per descriptor. */
const envoys = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  ...OPTIONS,
  includeDirs: ['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map(name => `${DEPS}${name}`),
})[SERVICE] as ServiceDefinition

const ours = loadSync('ratelimit.proto', {
  ...OPTIONS,
  includeDirs: [fileURLToPath(new URL('../../proto', import.meta.url))],
})[SERVICE] as ServiceDefinition

export interface Reply {
  readonly overall_code: string
  readonly statuses: readonly {
    readonly code: string
    readonly current_limit: {
      readonly requests_per_unit: number
      readonly unit: string
      readonly name: string
    } | null
    readonly limit_remaining: number
    readonly duration_until_reset: { readonly seconds: number; readonly nanos: number } | null
  }[]
  readonly response_headers_to_add: readonly { readonly key: string; readonly value: string }[]
  readonly dynamic_metadata: unknown
}

export interface EnvoyClient {
  /** Asks with Envoy's own messages. */
  ask(request: object): Promise<Reply>
  /** Asks with our messages, which have the newer fields. */
  askNewer(request: object): Promise<Reply>
  /** Sends bytes as the message. */
  send(bytes: Buffer): Promise<Reply>
  health(service: string): Promise<string>
  readonly channel: Client
  close(): void
}

export function envoyClient(
  address: string,
  creds: ChannelCredentials = credentials.createInsecure(),
): EnvoyClient {
  const client = new Client(address, creds, { 'grpc.max_send_message_length': -1 })
  const { ShouldRateLimit: theirs } = envoys
  const { ShouldRateLimit: own } = ours
  if (theirs === undefined || own === undefined) throw new Error(`${DEPS}: expected ${METHOD_PATH}`)

  function call<T>(path: string, encode: (value: T) => Buffer, decode: (bytes: Buffer) => object, value: T) {
    return new Promise<object>((resolve, reject) => {
      const deadline = Date.now() + 5_000
      client.makeUnaryRequest(path, encode, decode, value, new Metadata(), { deadline }, (error, reply) => {
        if (error === null && reply !== undefined) resolve(reply)
        else reject(error as ServiceError)
      })
    })
  }

  return {
    ask: async request =>
      (await call(METHOD_PATH, theirs.requestSerialize, theirs.responseDeserialize, request)) as Reply,
    askNewer: async request =>
      (await call(
        METHOD_PATH,
        own.requestSerialize,
        own.responseDeserialize,
        asBytes(request) as object,
      )) as Reply,
    send: async bytes => (await call(METHOD_PATH, b => b, theirs.responseDeserialize, bytes)) as Reply,
    async health(service) {
      const encode = (name: string) => Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name)])
      const decode = (bytes: Buffer) => ({ status: ['UNKNOWN', 'SERVING', 'NOT_SERVING'][bytes[1] ?? 0] })
      const told = await call('/grpc.health.v1.Health/Check', encode, decode, service)
      return (told as { status: string }).status
    },
    channel: client,
    close: () => client.close(),
  }
}

/** Our proto has bytes where Envoy's has strings. */
function asBytes(value: unknown): unknown {
  if (typeof value === 'string' && value !== value.toUpperCase()) return Buffer.from(value)
  if (Array.isArray(value)) return value.map(asBytes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      ['key', 'value', 'domain'].includes(name) && typeof inner === 'string'
        ? Buffer.from(inner)
        : asBytes(inner),
    ]),
  )
}
