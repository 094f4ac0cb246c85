/**
 * How soon Envoy gets its answer from `headgate serve`: 2,000 requests a second of four descriptors, with Redis healthy
 * and frozen. Envoy waits for 20 ms.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGateway } from './harness/gateway.js'
import { freePort, startRedis } from './harness/redis-server.js'
import { quantile } from './harness/stats.js'

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const KEYS = ['a', 'b', 'c', 'd']
const PER_SECOND = 2_000
const CALLERS = 100
const LIMITS = `domain: edge
descriptors:
${KEYS.map(key => `  - { key: ${key}, rate_limit: { unit: hour, requests_per_unit: 4000000000 } }`).join('\n')}
`

/** Returns the p99 in milliseconds, healthy and frozen. @param {number} seconds Of each. */
export async function measureEnvoy(seconds) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-envoy-'))
  const limits = join(folder, 'edge.yaml')
  writeFileSync(limits, LIMITS)
  const redis = await startRedis()
  const port = await freePort()
  const flags = ['--redis', redis.url, '--ratelimit-config', limits, '--grpc-port', String(port)]
  const gateway = await startGateway('policies: {}\n', [...flags, '--upstream', 'http://127.0.0.1:1'])
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    await openLoop(session, seconds)
    const healthyMs = await openLoop(session, seconds)
    redis.signal('SIGSTOP')
    const frozenMs = await openLoop(session, seconds)
    redis.signal('SIGCONT')
    return { healthyMs, frozenMs }
  } finally {
    session.destroy()
    await gateway.stop()
    await redis.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Asks at a steady rate, whether or not earlier requests were answered; latency counts from when a request was due. @param {import('node:http2').ClientHttp2Session} session @param {number} seconds */
async function openLoop(session, seconds) {
  /** @type {Promise<number>[]} */
  const all = []
  const beganMs = performance.now()
  while (all.length < PER_SECOND * seconds) {
    const due = Math.min(PER_SECOND * seconds, ((performance.now() - beganMs) * PER_SECOND) / 1000)
    while (all.length < due) {
      const dueMs = beganMs + (all.length * 1000) / PER_SECOND
      all.push(ask(session, `caller-${all.length % CALLERS}`).then(() => performance.now() - dueMs))
    }
    await sleep(1)
  }
  return quantile(
    (await Promise.all(all)).sort((one, other) => one - other),
    0.99,
  )
}

/** @param {import('node:http2').ClientHttp2Session} session @param {string} caller @returns {Promise<void>} */
function ask(session, caller) {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    stream.on('error', reject)
    stream.on('trailers', ({ 'grpc-status': status }) => {
      if (status !== '0') reject(new Error(`the rate limit service answered with status ${status}`))
    })
    stream.on('end', resolve).resume()
    stream.end(questionOf(caller))
  })
}

/** Returns a RateLimitRequest of one descriptor for each key, in a gRPC frame. @param {string} caller */
function questionOf(caller) {
  const descriptors = KEYS.map(key =>
    field(2, field(1, field(1, Buffer.from(key)), field(2, Buffer.from(caller)))),
  )
  const message = Buffer.concat([field(1, Buffer.from('edge')), ...descriptors])
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** Returns a field of Protocol Buffers, shorter than 128 bytes. @param {number} number @param {...Buffer} parts */
function field(number, ...parts) {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.of((number << 3) | 2, content.length), content])
}
