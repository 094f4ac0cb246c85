/** Token limits as they are run: `headgate serve` with a policy file, TLS with HTTP/2, Redis, several processes, metrics. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startRedis } from '../../headgate/test/support/redis-process.ts'
import { certificate } from './support/certificate.js'
import { type HeadgateProcess, runHeadgate, serveHeadgate } from './support/headgate-process.js'

/** For a machine that has more to do. */
const PATIENT = { timeout: 20_000 }
const USAGE = { prompt_tokens: 30, completion_tokens: 70, total_tokens: 100 }
const folder = mkdtempSync(join(tmpdir(), 'headgate-tokens-'))
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const closers: (() => unknown)[] = []
/** Answers that wait until they are let go. */
let waiting: (() => void)[] | null = null
const upstream = createServer((req, res) => {
  req.resume().on('end', () => {
    const goOn = () => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.write('data: {"choices":[{"delta":{"content":"hi"}}],"usage":null}\n\n')
      res.end(`data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`)
    }
    if (waiting === null) goOn()
    else waiting.push(goOn)
  })
})
const policy = (port: number) => `
policies:
  calls: { algorithm: sliding-window-log, limit: 1000, window: 1h }
  prompt: { algorithm: token-bucket, capacity: 100000, refillPerSecond: 1 }
  answer: { algorithm: sliding-window-log, limit: 10000, window: 1h }
default: { policy: calls }
identify: [ip]
rules:
  - name: model
    match: { method: POST, path: /v1/* }
    policy: calls
    tokens:
      input: { policy: prompt, reserve: 400 }
      output: { policy: answer, reserve: 1000, from: max_tokens }
upstream: "http://127.0.0.1:${port}"
`
let config = ''
let ca = ''
let served: HeadgateProcess[] = []

beforeAll(async () => {
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const { cert, key } = await certificate('127.0.0.1')
  ca = cert
  config = file('headgate.yaml', policy((upstream.address() as AddressInfo).port))
  const redis = await startRedis()
  closers.push(() => redis.stop())
  const plain = ['--config', config, '--redis', redis.url, '--deadline', '5000']
  const tls = ['--tls-cert', file('cert.pem', cert), '--tls-key', file('key.pem', key)]
  served = await Promise.all([serveHeadgate(...plain), serveHeadgate(...plain, ...tls)])
})
afterAll(async () => {
  await Promise.all(served.map(one => one.end('SIGTERM')))
  for (const close of closers) await close()
  upstream.closeAllConnections()
  upstream.close()
  rmSync(folder, { recursive: true, force: true })
})

const post = (one: HeadgateProcess | undefined, body: object) =>
  fetch(`${one?.gatewayUrl}/v1/chat`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })

const left = async () => {
  const response = await fetch(`${served[0]?.adminUrl}/v1/inspect`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"subject":"ip:127.0.0.1"}',
  })
  const { limits } = (await response.json()) as { limits: { name: string; remaining: number }[] }
  const of = (name: string) => limits.find(limit => limit.name.startsWith(name))?.remaining
  return { prompt: of('prompt.'), answer: of('answer.') }
}

it('two processes share what is reserved and settled, over HTTP/1.1 and HTTP/2', async () => {
  const [plain, secure] = served
  const response = await post(plain, { max_tokens: 500 })
  expect(await response.text()).toContain('"completion_tokens":70')
  const session = connect(secure?.gatewayUrl ?? '', { ca })
  const text = await new Promise<string>((resolve, reject) => {
    const stream = session.request({
      ':path': '/v1/chat',
      ':method': 'POST',
      'content-type': 'application/json',
    })
    let got = ''
    stream.setEncoding('utf8').on('data', chunk => {
      got += chunk
    })
    stream.on('end', () => resolve(got)).on('error', reject)
    stream.end('{"max_tokens":600}')
  })
  session.close()
  expect(text).toContain('data: [DONE]')
  await expect.poll(async () => (await left()).answer, PATIENT).toBe(10_000 - 140)
  expect((await left()).prompt).toBeGreaterThanOrEqual(100_000 - 60)
})

it('parallel calls through both never reserve more than there is', async () => {
  waiting = []
  const before = (await left()).answer ?? 0
  let denied = 0
  const calls = Array.from({ length: 16 }, async () => {
    const { status } = await post(served[0], { max_tokens: 1_500 })
    if (status === 429) denied++
    return status
  })
  const fitting = Math.floor(before / 1_500)
  await expect.poll(() => [waiting?.length, denied], PATIENT).toEqual([fitting, 16 - fitting])
  for (const goOn of waiting) goOn()
  waiting = null
  await Promise.all(calls)
  await expect.poll(async () => (await left()).answer, PATIENT).toBe(before - fitting * 70)
})

it('a denial names the limit of the tokens', async () => {
  const response = await post(served[0], { max_tokens: 50_000 })
  expect(response.status).toBe(429)
  const problem = (await response.json()) as Record<string, unknown>
  expect(JSON.stringify(problem['violated-policies'])).toContain('answer')
})

it('metrics count the tokens by meter, and estimates by reason', async () => {
  await post(served[0], {})
  const read = async () => (await fetch(`${served[0]?.adminUrl}/metrics`)).text()
  await expect.poll(read, PATIENT).toMatch(/^rate_limit_gateway_tokens_total\{meter="input"\} \d+$/m)
  expect(await read()).toMatch(
    /^rate_limit_gateway_token_estimates_total\{meter="output",reason="field-missing"\} 1$/m,
  )
})

it('rules validate rejects what cannot be meant, by its path', async () => {
  const broken = (text: string) => runHeadgate(['rules', 'validate', file('broken.yaml', text)])
  const { port } = upstream.address() as AddressInfo
  const twice = await broken(policy(port).replace('policy: answer,', 'policy: prompt,'))
  expect(twice.code).not.toBe(0)
  expect(twice.stderr + twice.stdout).toContain('a policy that no other meter charges')
  const tooMuch = await broken(policy(port).replace('reserve: 1000', 'reserve: 10001'))
  expect(tooMuch.stderr + tooMuch.stdout).toContain('at most 10000, which is all that policy answer ever has')
  const none = await broken(policy(port).replace(/tokens:\n(?: {6}.*\n)+/, 'tokens: {}\n'))
  expect(none.stderr + none.stdout).toContain('at least one of input, output, total')
})

it('rules explain shows what a request reserves', async () => {
  const { stdout } = await runHeadgate(['rules', 'explain', '--config', config, 'POST', '/v1/chat'])
  expect(stdout).toContain('output tokens, policy answer: reserves max_tokens of the body, or else 1000 of')
})
