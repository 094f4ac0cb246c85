/** `headgate serve` with Envoy's rate limit service: flags, TLS, the JSON mirror, and how it stops. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { credentials } from '@grpc/grpc-js'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../headgate/test/support/wait-until.ts'
import { envoyClient } from './support/envoy-client.js'
import { serveHeadgate } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-envoy-serve-'))
const file = (name: string) => join(folder, name)
const cleanUps: (() => unknown)[] = []
beforeAll(() => {
  const limits = 'descriptors: [{ key: a, rate_limit: { unit: hour, requests_per_unit: 1 } }]'
  writeFileSync(file('edge.yaml'), `domain: edge\n${limits}\n`)
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ASK = { domain: 'edge', descriptors: [{ entries: [{ key: 'a', value: 'x' }] }] }

async function serve(...args: string[]) {
  const served = await serveHeadgate(
    '--demo',
    '--ratelimit-config',
    file('edge.yaml'),
    '--grpc-port',
    '0',
    ...args,
  )
  cleanUps.push(() => served.end('SIGTERM'))
  const address = /Envoy gRPC +(\S+)/.exec(served.stdout())?.[1] ?? ''
  return { ...served, address }
}

it('the Envoy service answers gRPC and JSON by the same limits, and SIGTERM ends it though clients stay connected', async () => {
  const { address, adminUrl, end } = await serve()
  const client = envoyClient(address)
  cleanUps.push(() => client.close())
  expect((await client.ask(ASK)).overall_code).toBe('OK')
  const json = (body: unknown) =>
    fetch(`${adminUrl}/json`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  const over = await json(ASK)
  expect(over.status).toBe(429)
  expect(await over.json()).toMatchObject({
    overallCode: 'OVER_LIMIT',
    statuses: [{ code: 'OVER_LIMIT', currentLimit: { requestsPerUnit: 1, unit: 'HOUR' } }],
    responseHeadersToAdd: [{ key: 'Retry-After', value: expect.stringMatching(/^\d+$/) }],
  })
  const [descriptor] = ASK.descriptors
  const own = { ...descriptor, limit: { requests_per_unit: 9, unit: 'DAY' }, hits_addend: '2' }
  const fine = await json({ ...ASK, descriptors: [own] })
  expect(fine.status).toBe(200)
  expect(await fine.json()).toMatchObject({ overallCode: 'OK', statuses: [{ limitRemaining: 7 }] })
  for (const [field, body] of [
    ['domain', { ...ASK, domain: '' }],
    ['descriptors', { ...ASK, descriptors: 7 }],
    ['descriptors[0].entries[0].key', { ...ASK, descriptors: [{ entries: [{ key: 7 }] }] }],
    ['descriptors[0].limit.unit', { ...ASK, descriptors: [{ ...descriptor, limit: { unit: 'EON' } }] }],
    ['hitsAddend', { ...ASK, hitsAddend: [] }],
  ] as const) {
    const rejected = await json(body)
    expect([rejected.status, ((await rejected.json()) as { field: string }).field]).toEqual([400, field])
  }
  const { code, stderr } = await end('SIGTERM')
  expect([code, stderr]).toEqual([0, ''])
})

it('decisions of Envoy are in the metrics and denials, and a broken file shows in /readyz and the metrics', async () => {
  const { address, adminUrl } = await serve()
  const client = envoyClient(address)
  cleanUps.push(() => client.close())
  const codes = [await client.ask(ASK), await client.ask(ASK), await client.ask(ASK)].map(
    ({ overall_code }) => overall_code,
  )
  expect(codes).toEqual(['OK', 'OVER_LIMIT', 'OVER_LIMIT'])
  const read = async (path: string) => (await fetch(`${adminUrl}${path}`)).text()
  expect(await read('/metrics')).toMatch(/^rate_limit_decisions_total{policy="envoy".*outcome="denied"} 2$/m)
  await waitUntil('the denial', async () => (await read('/v1/denials')).includes('descriptor:'))
  const good = readFileSync(file('edge.yaml'))
  cleanUps.push(() => writeFileSync(file('edge.yaml'), good))
  writeFileSync(file('edge.yaml'), 'domain: [')
  await waitUntil('readyz', async () => (await read('/readyz')).includes('"config":"stale"'))
  expect(await read('/metrics')).toMatch(/^rate_limit_config_stale 1$/m)
  expect((await client.ask(ASK)).overall_code).toBe('OVER_LIMIT')
  writeFileSync(file('edge.yaml'), good)
  await waitUntil('readyz', async () => (await read('/readyz')).includes('"config":"current"'))
})

it('the Envoy service speaks TLS, and asks callers for a certificate where an authority is named', async () => {
  const openssl = (...args: string[]) => promisify(execFile)('openssl', args, { cwd: folder })
  const subject = ['-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-days', '2']
  await openssl(
    ...['req', '-x509', ...subject, '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'],
    ...['-keyout', 'key.pem', '-out', 'cert.pem'],
  )
  const tls = ['--grpc-tls-cert', file('cert.pem'), '--grpc-tls-key', file('key.pem')]
  const { address } = await serve(...tls, '--grpc-client-ca', file('cert.pem'))
  const [cert, key] = [readFileSync(file('cert.pem')), readFileSync(file('key.pem'))]
  const known = envoyClient(address, credentials.createSsl(cert, key, cert))
  const unknown = envoyClient(address, credentials.createSsl(cert))
  cleanUps.push(known.close, unknown.close)
  expect((await known.ask(ASK)).overall_code).toBe('OK')
  await expect(unknown.ask(ASK)).rejects.toMatchObject({ code: 14 })
})

describe('rejects at the start', () => {
  it.each([
    ['--grpc-port: expected beside --ratelimit-config', ['--grpc-port', '0']],
    ['--ratelimit-shadow: expected beside --ratelimit-config', ['--ratelimit-shadow']],
    ['--grpc-tls-cert: expected together with', ['--ratelimit-config', 'x.yaml', '--grpc-tls-cert', 'c.pem']],
    ['--grpc-client-ca: expected beside', ['--ratelimit-config', 'x.yaml', '--grpc-client-ca', 'c.pem']],
  ])('the Envoy service rejects at the start: %s', async (complaint, args) => {
    const { code, err } = await runInProcess(['serve', '--demo', '--port', '0', '--admin-port', '0', ...args])
    expect(code).toBe(2)
    expect(err).toContain(complaint)
  })

  it('the Envoy service rejects at the start a file that cannot be used', async () => {
    const args = ['--ratelimit-config', file('none.yaml'), '--grpc-port', '0']
    const { code, err } = await runInProcess(['serve', '--demo', '--port', '0', '--admin-port', '0', ...args])
    expect([code, err.includes('none.yaml: expected a file or a folder that can be read')]).toEqual([2, true])
  })
})
