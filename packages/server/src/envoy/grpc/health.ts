/** gRPC's health checking, which Envoy and Kubernetes ask before they send anything. */
import { CallError, STATUS } from './call-error.js'
import type { Method, Replies } from './call-server.js'
import { loadMethod } from './load-proto.js'

interface HealthCheckRequest {
  readonly service?: string
}
interface HealthCheckResponse {
  readonly status: number
}

const SERVING = { status: 1 }
const NOT_SERVING = { status: 2 }
const SERVICE_UNKNOWN = { status: 3 }
/** All of them are one program: the server as a whole, envoyproxy/ratelimit's name, and the full name. */
const SERVICES = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService']
/** Further ones are rejected, because each watcher keeps a stream open. A client needs one. */
const MAX_WATCHERS = 1_000
const MAX_WATCHERS_OF_A_CONNECTION = 10
const FILE = 'health.proto'
const NAME = 'grpc.health.v1.Health'
const CHECK = loadMethod<HealthCheckRequest, HealthCheckResponse>(FILE, NAME, 'Check')
const WATCH = loadMethod<HealthCheckRequest, HealthCheckResponse>(FILE, NAME, 'Watch')

export interface Health {
  /** Its methods, by their paths. */
  readonly methods: readonly (readonly [string, Method])[]
  /** Tells everybody who asks or watches that it is stopping. */
  stopServing(): void
}

export function createHealth(): Health {
  let now: HealthCheckResponse = SERVING
  const watchers = new Map<Replies, HealthCheckRequest>()
  const statusOf = ({ service = '' }: HealthCheckRequest): HealthCheckResponse =>
    SERVICES.includes(service) ? now : SERVICE_UNKNOWN

  function check(message: Buffer): Buffer {
    const told = statusOf(requestOf(message))
    if (told !== SERVICE_UNKNOWN) return CHECK.responseSerialize(told)
    throw new CallError(STATUS.notFound, 'service: expected one that is here')
  }

  function watch(message: Buffer, replies: Replies): void {
    const request = requestOf(message)
    const own = [...watchers.keys()].filter(({ connection }) => connection === replies.connection).length
    if (watchers.size >= MAX_WATCHERS || own >= MAX_WATCHERS_OF_A_CONNECTION) {
      throw new CallError(STATUS.resourceExhausted, 'health: too many are watching')
    }
    watchers.set(replies, request)
    replies.onClose(() => watchers.delete(replies))
    replies.send(WATCH.responseSerialize(statusOf(request)))
  }

  return {
    methods: [
      [CHECK.path, { answer: check }],
      [WATCH.path, { stream: watch }],
    ],
    stopServing() {
      now = NOT_SERVING
      for (const [replies, request] of watchers) {
        replies.send(WATCH.responseSerialize(statusOf(request)))
        replies.end()
      }
      watchers.clear()
    },
  }
}

function requestOf(message: Buffer): HealthCheckRequest {
  try {
    return CHECK.requestDeserialize(message)
  } catch {
    throw new CallError(
      STATUS.invalidArgument,
      'message: expected a HealthCheckRequest; got bytes that are none',
    )
  }
}
