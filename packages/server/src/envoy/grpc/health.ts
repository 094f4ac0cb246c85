/** gRPC's health checking: what Envoy and Kubernetes ask before they send anything. */
import {
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { loadMethod } from './load-proto.js'

interface Asked {
  readonly service?: string
}
interface Told {
  readonly status: number
}

const SERVING = { status: 1 }
const NOT_SERVING = { status: 2 }
const SERVICE_UNKNOWN = { status: 3 }
/** All of them are one program: the server as a whole, as envoyproxy/ratelimit names it, and by its full name. */
const SERVICES = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService']
/** More are refused: each watcher keeps a stream open. */
const MAX_WATCHERS = 1_000
const FILE = 'health.proto'
const NAME = 'grpc.health.v1.Health'

export const HEALTH_METHODS = {
  Check: loadMethod<Asked, Told>(FILE, NAME, 'Check'),
  Watch: loadMethod<Asked, Told>(FILE, NAME, 'Watch'),
}

export interface Health {
  readonly implementation: UntypedServiceImplementation
  /** Tells everybody who asks or watches that it is stopping. */
  stopServing(): void
}

export function createHealth(): Health {
  let now: Told = SERVING
  const watchers = new Set<ServerWritableStream<Asked, Told>>()
  const statusOf = ({ service = '' }: Asked): Told => (SERVICES.includes(service) ? now : SERVICE_UNKNOWN)

  function check({ request }: ServerUnaryCall<Asked, Told>, answer: sendUnaryData<Told>): void {
    const told = statusOf(request)
    if (told === SERVICE_UNKNOWN)
      answer({ code: status.NOT_FOUND, details: 'service: expected one that is here' })
    else answer(null, told)
  }

  function watch(call: ServerWritableStream<Asked, Told>): void {
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
