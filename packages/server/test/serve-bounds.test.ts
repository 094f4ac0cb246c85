import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Config, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, describe, expect, it } from 'vitest'
import { DEFAULT_RULES } from '../src/observe/alert-rules.js'
import { startFront } from '../src/service/front.js'
import { type Service, type ServiceOptions, startService } from '../src/service/service.js'
import { type HeadgateProcess, runHeadgate, serveHeadgate } from './support/headgate-process.js'
import { lines, rawRequest } from './support/raw-http.js'
import { startRawUpstream } from './support/raw-upstream.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serve(...args: string[]): Promise<HeadgateProcess> {
  const running = await serveHeadgate('--demo', ...args)
  closers.push(() => running.child.kill('SIGKILL'))
  return running
}

describe('the bounds of a gateway', () => {
  it('the bounds of a gateway are flags of serve', async () => {
    const { gatewayUrl } = await serve('--max-headers', '3', '--max-pipelined', '1')
    const headers = ['a: 1', 'b: 2', 'c: 3']
    expect((await rawRequest(gatewayUrl, lines('GET / HTTP/1.1', 'Host: a', ...headers))).status).toBe(431)
    const pipelined = await rawRequest(gatewayUrl, lines('GET / HTTP/1.1', 'Host: a').repeat(3))
    expect(pipelined.text.match(/HTTP\/1\.1 200/g)).toHaveLength(1)
  })

  it.each(['-1', '99999999999'])('the bounds of a gateway are whole numbers: %j is rejected', async value => {
    const { code, stderr } = await runHeadgate(['serve', '--demo', '--min-body-rate', value])
    expect(code).toBe(2)
    expect(stderr).toContain('--min-body-rate <number>')
    expect(stderr).toContain('expected a whole number from 0 to 2147483647')
  })
})

/** How many connections the system keeps for a server that is busy. */
function largestBacklog(): number {
  try {
    return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
  } catch {
    return 128
  }
}

it.each(['gatewayUrl', 'adminUrl'] as const)(
  'a server that is busy for a moment loses no connection the system has room for: %s',
  async port => {
    const server = await serve()
    const wanted = Math.min(1_500, largestBacklog())
    const url = new URL(server[port])
    server.child.kill('SIGSTOP')
    let connected = 0
    const sockets = Array.from({ length: wanted }, () =>
      connect(Number(url.port), url.hostname, () => connected++).on('error', () => {}),
    )
    // A connection beyond the backlog is tried again after a second at the earliest, in vain: nobody accepts.
    for (let waited = 0; connected < wanted && waited < 5_000; waited += 50) await sleep(50)
    for (const socket of sockets) socket.destroy()
    expect(connected).toBe(wanted)
  },
)

describe('the decision API', () => {
  it.each(['0.0.0.0', '::', '127.0.0.1.example'])(
    'the decision API does not start on %s, where others could reach it',
    async address => {
      const { code, stderr } = await runHeadgate(['serve', '--demo', '--admin-host', address])
      expect(code).toBe(2)
      expect(stderr).toMatch(/^headgate: --admin-host: expected a loopback address .*; got "/)
      expect(stderr).toContain(address)
    },
  )

  it('the decision API starts on another loopback address', async () => {
    const { adminUrl } = await serve('--admin-host', '127.0.0.2')
    expect(adminUrl).toMatch(/^http:\/\/127\.0\.0\.2:/)
    expect((await fetch(`${adminUrl}/healthz`)).status).toBe(200)
  })
})

const config = (upstream: string) =>
  defineConfig({
    policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) },
    default: { policy: 'api' },
    upstream,
  })

function startedWith(options: Pick<ServiceOptions, 'config' | 'openFront'>): Promise<Service> {
  return startService({
    ...options,
    host: '127.0.0.1',
    port: 0,
    alerts: { rules: DEFAULT_RULES, budget: { opsPerSecond: null, memoryBytes: null }, webhook: null },
    admin: { host: '127.0.0.1', port: 0, tokens: [], names: [], metricsPublic: false, showSubjects: false },
    bounds: {},
    drain: { delayMs: 0, timeoutMs: 1_000 },
    upstream: null,
    demo: false,
    log: () => {},
    configState: () => ({ config: 'current', rejectedConfigs: 0 }),
  })
}

it('stopping a service twice closes everything once', async () => {
  const upstream = await startRawUpstream()
  closers.push(upstream.close)
  let stops = 0
  const service = await startedWith({
    config: config(upstream.url),
    async openFront(deciding, options) {
      const front = await startFront(deciding, options)
      return {
        ...front,
        stop() {
          stops++
          return front.stop()
        },
      }
    },
  })
  await service.stop()
  await service.stop()
  expect(stops).toBe(1)
})

it('a configuration that cannot be put in force changes nothing, not even where requests go', async () => {
  const first = await startRawUpstream()
  const second = await startRawUpstream()
  closers.push(first.close, second.close)
  const service = await startedWith({ config: config(first.url) })
  closers.push(service.stop)
  const broken: Config = { ...config(second.url), prefix: 'another' }
  await expect(service.apply(broken)).rejects.toThrow('config prefix: expected')
  expect((await fetch(service.gatewayUrl)).status).toBe(200)
  expect([first.received.length, second.received.length]).toEqual([1, 0])
  await service.apply(config(second.url))
  expect((await fetch(service.gatewayUrl)).status).toBe(200)
  expect([first.received.length, second.received.length]).toEqual([1, 1])
})
