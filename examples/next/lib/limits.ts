import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { createClientAddress } from 'headgate/identify'

function create() {
  return createLimiter({
    policies: {
      pages: slidingWindowLog({ limit: 20, window: '1m' }),
      login: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
    },
  })
}

// Next.js may load this module more than once in a process. With limits in Redis that does not matter.
const kept = globalThis as { exampleLimiter?: ReturnType<typeof create> }
kept.exampleLimiter ??= create()
export const limiter = kept.exampleLimiter

// Behind one proxy, which adds the address of its client at the right end of X-Forwarded-For. Next.js itself does not say
// who is connected.
const clientAddress = createClientAddress({ trustedProxies: { hops: 1 } })

export function subject({ headers }: { headers: Pick<Headers, 'get'> }) {
  return `ip:${clientAddress('127.0.0.1', headers.get('x-forwarded-for') ?? undefined)}`
}
