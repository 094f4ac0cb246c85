/** gRPC's health checking, which Envoy and Kubernetes ask before they send anything. */
import {
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
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
/** Further ones are refused, because each watcher keeps a stream open. */
const MAX_WATCHERS = 1_000
const FILE = 'health.proto'
const NAME = 'grpc.health.v1.Health'

export const HEALTH_METHODS = {
  Check: loadMethod<HealthCheckRequest, HealthCheckResponse>(FILE, NAME, 'Check'),
  Watch: loadMethod<HealthCheckRequest, HealthCheckResponse>(FILE, NAME, 'Watch'),
}

export interface Health {
  readonly implementation: UntypedServiceImplementation
  /** Tells everybody who asks or watches that it is stopping. */
  stopServing(): void
}

export function createHealth(): Health {
  let now: HealthCheckResponse = SERVING
  const watchers = new Set<ServerWritableStream<HealthCheckRequest, HealthCheckResponse>>()
  const statusOf = ({ service = '' }: HealthCheckRequest): HealthCheckResponse =>
    SERVICES.includes(service) ? now : SERVICE_UNKNOWN

  function check(
    { request }: ServerUnaryCall<HealthCheckRequest, HealthCheckResponse>,
    answer: sendUnaryData<HealthCheckResponse>,
  ): void {
    const told = statusOf(request)
    if (told === SERVICE_UNKNOWN)
      answer({ code: status.NOT_FOUND, details: 'service: expected one that is here' })
    else answer(null, told)
  }

  function watch(call: ServerWritableStream<HealthCheckRequest, HealthCheckResponse>): void {
    if (watchers.size >= MAX_WATCHERS) {
      call.emit('error', { code: status.RESOURCE_EXHAUSTED, details: 'health: too many are watching' })
      return
    }
    watchers.add(call)
    call.on('cancelled', () => watchers.delete(call))
    call.on('close', () => watchers.delete(call))
    call.write(statusOf(call.request))
  }

  return {
    implementation: { Check: check, Watch: watch },
    stopServing() {
      now = NOT_SERVING
      for (const call of watchers) {
        call.write(statusOf(call.request))
        call.end()
      }
      watchers.clear()
    },
  }
}
