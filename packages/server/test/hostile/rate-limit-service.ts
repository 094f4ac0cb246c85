/** Questions to Envoy's rate limit service that no honest client sends. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { createDice } from '../../../headgate/test/simulation/dice.js'
import { type EnvoyClient, envoyClient } from '../support/envoy-client.js'
import type { Attack, AttackGroup } from './attack.js'
import { type Target, underAttack } from './target.js'

const YAML = `
domain: edge
descriptors:
  - key: a
    rate_limit: { unit: hour, requests_per_unit: 4294967295 }
`
const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const INVALID_ARGUMENT = 3
const RESOURCE_EXHAUSTED = 8
const entry = (value: string) => ({ entries: [{ key: 'a', value }] })

async function attacked(
  attack: (client: EnvoyClient, address: string, target: Target) => Promise<string>,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-hostile-rls-'))
  writeFileSync(join(folder, 'edge.yaml'), YAML)
  try {
    return await underAttack(
      { args: ['--ratelimit-config', folder, '--grpc-port', '0'] },
      async (target: Target) => {
        const address = /Envoy gRPC +(\S+)/.exec(target.stdout())?.[1] ?? ''
        const client = envoyClient(address)
        try {
          const outcome = await attack(client, address, target)
          const { overall_code } = await client.ask({ domain: 'edge', descriptors: [entry('honest')] })
          if (overall_code !== 'OK') throw new Error(`an honest question got ${overall_code}`)
          return outcome
        } finally {
          client.close()
        }
      },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the outcome of a question: its code, or the status of its error. */
async function codeOf(asking: Promise<{ overall_code: string }>): Promise<string | number> {
  return asking.then(
    ({ overall_code }) => overall_code,
    error => (error as { code: number }).code,
  )
}

function expectCode(what: string, got: string | number, expected: readonly (string | number)[]): void {
  if (!expected.includes(got)) throw new Error(`${what}: expected ${expected.join(' or ')}; got ${got}`)
}

const sizes: Attack = {
  name: 'too much at once',
  does: 'asks with 10,000 descriptors, 5 MB of them, a value of 5 MB, and hits of 0, 2^32−1 and 2^64−1',
  expected: 'INVALID_ARGUMENT or RESOURCE_EXHAUSTED, no overflow: hits count exactly',
  inShort: true,
  run: () =>
    attacked(async client => {
      const many = (count: number, value: string) => ({
        domain: 'edge',
        descriptors: Array.from({ length: count }, () => entry(value)),
      })
      expectCode('10,000 descriptors', await codeOf(client.ask(many(10_000, 'x'))), [INVALID_ARGUMENT])
      const large = [RESOURCE_EXHAUSTED]
      expectCode('5 MB of them', await codeOf(client.ask(many(10_000, 'x'.repeat(500)))), large)
      expectCode('a value of 5 MB', await codeOf(client.ask(many(1, 'x'.repeat(5_000_000)))), large)
      const hits = (hits_addend: number) =>
        client.ask({ domain: 'edge', descriptors: [entry('h')], hits_addend })
      const one = await hits(0)
      if (one.statuses[0]?.limit_remaining !== 4_294_967_294) throw new Error('hits of 0 are not one unit')
      expectCode('2^32−1 above what is left', await codeOf(hits(4_294_967_295)), ['OVER_LIMIT'])
      const huge = { ...entry('h'), hits_addend: { value: 2 ** 64 } }
      expectCode('2^64', await codeOf(client.askNewer({ domain: 'edge', descriptors: [huge] })), [
        INVALID_ARGUMENT,
      ])
      const left = (await hits(0)).statuses[0]?.limit_remaining
      if (left !== 4_294_967_293) throw new Error(`${left} left`)
      return 'each rejected by its status; two units of 4294967295 charged'
    }),
}

const bytes: Attack = {
  name: 'bytes that are no message',
  does: 'sends texts that are not UTF-8, cut and random messages, compressed ones that are broken or huge, and random frames',
  expected: 'INVALID_ARGUMENT or another error, never OK for invalid text; other calls continue',
  inShort: true,
  run: ({ seed, isShort }) =>
    attacked(async (client, address) => {
      const { roll: random } = createDice(seed)
      const noise = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)))
      const domain = Buffer.concat([Buffer.from([10, 4]), Buffer.from('edge')])
      const badText = Buffer.concat([domain, Buffer.from([18, 9, 10, 7, 10, 1, 97, 18, 2, 0xc3, 0x28])])
      expectCode('not UTF-8', await codeOf(client.send(badText)), [INVALID_ARGUMENT])
      const counts = new Map<string | number, number>()
      for (let time = 0; time < (isShort ? 300 : 5_000); time++) {
        const code = await codeOf(client.send(noise(Math.floor(random() * 200))))
        counts.set(code, (counts.get(code) ?? 0) + 1)
      }
      if (counts.has('OK')) throw new Error('random bytes were a question')
      const compressed = [
        await rawCall(address, framed(Buffer.from('no gzip at all'), 1)),
        await rawCall(address, framed(gzipSync(Buffer.alloc(50_000_000)), 1)),
      ]
      if (compressed.includes('0')) throw new Error('a broken compressed message was taken')
      for (let time = 0; time < (isShort ? 20 : 300); time++) await rawBytes(address, noise(500))
      return `${[...counts].map(([code, count]) => `${count} × ${code}`).join(', ')}; compressed: ${compressed.join(', ')}`
    }),
}

const MB = 1024 * 1024

const unfinished: Attack = {
  name: 'unfinished messages',
  does: 'begins 2,000 messages of 250 KB on one connection and on eight, then 8,000 of ten bytes and of none, and finishes none of them',
  expected:
    'at most 100 MB more memory, an honest question is answered meanwhile, and the calls end within seconds',
  inShort: true,
  run: ({ isShort }) =>
    attacked(async (client, address, { residentBytes }) => {
      const open = { calls: 0 }
      const honest = () => client.ask({ domain: 'edge', descriptors: [entry('meanwhile')] })
      const ways: readonly [connections: number, calls: number, bytes: number][] = [
        [1, 2_000, 250_000],
        [8, 250, 250_000],
        [8, 1_000, 10],
        [8, 1_000, 0],
      ]
      const grown: number[] = []
      for (const [connections, calls, bytes] of isShort ? ways.slice(0, 1) : ways) {
        const before = residentBytes() ?? 0
        let most = 0
        const sessions = Array.from({ length: connections }, () => connectHttp2(`http://${address}`))
        for (const session of sessions) {
          session.on('error', () => {})
          for (let call = 0; call < calls; call++) beginMessage(session, bytes, open)
        }
        for (let time = 0; time < 20; time++) {
          expectCode('meanwhile', await codeOf(honest()), ['OK'])
          await sleep(100)
          most = Math.max(most, (residentBytes() ?? 0) - before)
        }
        grown.push(Math.round(most / MB))
        if (most > 100 * MB) throw new Error(`${grown.join(', ')} MB more memory`)
        const began = performance.now()
        if (!isShort) while (open.calls > 0 && performance.now() - began < 20_000) await sleep(100)
        for (const session of sessions) session.destroy()
        if (!isShort && open.calls > 0) throw new Error(`${open.calls} calls are still open after 20 s`)
      }
      return `${grown.join(', ')} MB more memory; honest questions answered`
    }),
}

/** Begins a message of `bytes` + 1 bytes, and never sends the last. */
function beginMessage(session: ClientHttp2Session, bytes: number, open: { calls: number }): void {
  const stream = session.request({
    ':method': 'POST',
    ':path': PATH,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  open.calls++
  stream.on('error', () => {})
  stream.once('close', () => open.calls--)
  stream.resume()
  if (bytes > 0) stream.write(framed(Buffer.alloc(bytes + 1), 0).subarray(0, bytes))
}

/** Builds a gRPC frame. */
function framed(message: Buffer, compressed: 0 | 1): Buffer {
  const head = Buffer.alloc(5)
  head[0] = compressed
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** Returns the gRPC status of a call whose message claims to be compressed. */
function rawCall(address: string, body: Buffer): Promise<string> {
  return new Promise(resolve => {
    const session = connectHttp2(`http://${address}`)
    session.on('error', () => resolve('closed'))
    const stream = session.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-encoding': 'gzip',
    })
    const done = (status: string) => {
      resolve(status)
      session.destroy()
    }
    stream.on(
      'response',
      headers => headers['grpc-status'] !== undefined && done(String(headers['grpc-status'])),
    )
    stream.on('trailers', trailers => done(String(trailers['grpc-status'])))
    stream.on('error', () => done('closed'))
    stream.resume()
    stream.end(body)
  })
}

/** Sends bytes in place of HTTP/2. */
function rawBytes(address: string, data: Buffer): Promise<void> {
  const [host = '', port = ''] = address.split(':')
  return new Promise(resolve => {
    const socket = connect(Number(port), host, () => socket.end(data))
    socket.on('error', () => {})
    socket.on('close', () => resolve())
    socket.resume()
  })
}

export const rateLimitService: AttackGroup = {
  title: 'Rate limit service',
  attacks: [sizes, bytes, unfinished],
}
