import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lines, rawRequest } from './support/raw-http.js'
import { type RawUpstream, startRawUpstream } from './support/raw-upstream.js'
import { startGateway, type TestGateway } from './support/test-gateway.js'

let upstream: RawUpstream
let gateway: TestGateway
beforeEach(async () => {
  upstream = await startRawUpstream()
})
afterEach(async () => {
  await gateway.close()
  await upstream.close()
})

const SPOOFS = [
  'X-Forwarded-For',
  'X-Real-IP',
  'Forwarded',
  'CF-Connecting-IP',
  'True-Client-IP',
  'X-Client-IP',
]

async function statusWith(...headers: string[]): Promise<number> {
  const request = lines('GET / HTTP/1.1', 'Host: a', 'Connection: close', ...headers)
  return (await rawRequest(gateway.url, request)).status
}

it('no header makes another client while nobody is trusted', async () => {
  gateway = await startGateway(upstream.url, { limit: 10 })
  const statuses: number[] = []
  for (let request = 0; request < 60; request++) {
    const address = `198.51.100.${request}`
    const value = SPOOFS[request % SPOOFS.length] === 'Forwarded' ? `for=${address}` : address
    statuses.push(await statusWith(`${SPOOFS[request % SPOOFS.length]}: ${value}`))
  }
  expect(statuses.filter(status => status === 200)).toHaveLength(10)
  expect(statuses.filter(status => status === 429)).toHaveLength(50)
})

describe('behind a trusted proxy', () => {
  beforeEach(async () => {
    gateway = await startGateway(upstream.url, { limit: 2, trustedProxies: ['127.0.0.1', '10.0.0.0/8'] })
  })

  it('each client behind a trusted proxy has a budget of its own, whatever it writes on the left', async () => {
    const statuses: number[] = []
    for (let request = 0; request < 4; request++) {
      statuses.push(
        await statusWith(`X-Forwarded-For: 1.1.1.${request}`, 'X-Forwarded-For: 203.0.113.9, 10.0.0.7'),
      )
    }
    expect(statuses).toEqual([200, 200, 429, 429])
    expect(await statusWith('X-Forwarded-For: 203.0.113.10')).toBe(200)
    expect(gateway.logged.join('\n')).toContain('ip:203.0.113.9')
  })

  it('a client that cannot be read is charged to the proxy', async () => {
    expect(await statusWith('X-Forwarded-For: unknown')).toBe(200)
    expect(await statusWith('X-Forwarded-For: 203.0.113.9, garbage')).toBe(200)
    expect(await statusWith()).toBe(429)
  })

  it('the upstream is told the client that was found, and the proxy, and nothing else', async () => {
    await statusWith('X-Forwarded-For: 1.1.1.1, 203.0.113.9', 'X-Real-IP: 1.1.1.1')
    expect(upstream.received[0]).toContain('X-Forwarded-For: 203.0.113.9, 127.0.0.1\r\n')
    expect(upstream.received[0]).not.toContain('1.1.1.1')
  })

  it('CDN headers from the proxy are passed on; its claims about the target are not', async () => {
    await statusWith('CF-Connecting-IP: 203.0.113.9', 'X-Original-URL: /admin')
    expect(upstream.received[0]).toContain('CF-Connecting-IP: 203.0.113.9\r\n')
    expect(upstream.received[0]).not.toContain('/admin')
  })
})

it('X-Forwarded-For is ignored where proxies write Forwarded', async () => {
  gateway = await startGateway(upstream.url, {
    limit: 1,
    trustedProxies: ['127.0.0.1'],
    forwardedHeader: 'forwarded',
  })
  expect(await statusWith('Forwarded: for=1.1.1.1, for="[2001:db8::9]:80"')).toBe(200)
  expect(await statusWith('Forwarded: for="[2001:DB8::A]"', 'X-Forwarded-For: 198.51.100.1')).toBe(429)
  expect(gateway.logged.join('\n')).toContain('ip:2001:db8:0:0::/64')
})

it('proxies are counted if the options say so', async () => {
  gateway = await startGateway(upstream.url, { limit: 1, trustedProxies: { hops: 1 } })
  expect(await statusWith('X-Forwarded-For: 1.1.1.1, 203.0.113.9')).toBe(200)
  expect(await statusWith('X-Forwarded-For: 2.2.2.2, 203.0.113.9')).toBe(429)
})
