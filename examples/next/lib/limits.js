import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { createClientAddress } from 'headgate/identify'

// Next.js may load this module more than once in a process. With limits in Redis that does not matter.
globalThis.exampleLimiter ??= createLimiter({
  policies: {
    pages: slidingWindowLog({ limit: 20, window: '1m' }),
    login: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
  },
})
export const limiter = globalThis.exampleLimiter

// Behind one proxy, which adds the address of its client at the right end of X-Forwarded-For. Next.js itself does not say
// who is connected.
const clientAddress = createClientAddress({ trustedProxies: { hops: 1 } })

export function subject({ headers }) {
  return `ip:${clientAddress('127.0.0.1', headers.get('x-forwarded-for'))}`
}
