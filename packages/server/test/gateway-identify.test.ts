/** The gateway identifies callers as the policy file says. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { SignJWT } from 'jose'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { lines, rawRequest } from './support/raw-http.js'
import { type RawUpstream, startRawUpstream } from './support/raw-upstream.js'
import { startGateway, type TestGateway } from './support/test-gateway.js'

let upstream: RawUpstream
let gateway: TestGateway
let folder: string
beforeEach(async () => {
  upstream = await startRawUpstream()
  folder = mkdtempSync(join(tmpdir(), 'headgate-identify-'))
})
afterEach(async () => {
  await gateway.close()
  await upstream.close()
  rmSync(folder, { recursive: true })
})

async function statusWith(...headers: string[]): Promise<number> {
  const request = lines('GET / HTTP/1.1', 'Host: a', 'Connection: close', ...headers)
  return (await rawRequest(gateway.url, request)).status
}

const policies = { one: slidingWindowLog({ limit: 1, window: '1m' }) }
const SECRET = 'a secret of more than thirty-two characters'

function token(subject: string, secret = SECRET): Promise<string> {
  return new SignJWT({ sub: subject })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('issuer')
    .setAudience('api')
    .setExpirationTime('1m')
    .sign(new TextEncoder().encode(secret))
}

it('known keys and verified tokens are callers of their own, everything else is its address', async () => {
  writeFileSync(join(folder, 'secret'), `${SECRET}\n`)
  const config = defineConfig({
    policies,
    default: { policy: 'one' },
    tiers: { two: { minute: 2 } },
    identify: [
      { apikey: {} },
      {
        jwt: { secretFile: join(folder, 'secret'), algorithms: ['HS256'], issuer: 'issuer', audience: 'api' },
      },
      'ip',
    ],
    subjects: { 'apikey:sk_1': { tier: 'two' } },
  })
  gateway = await startGateway(upstream.url, { config })
  const key = 'X-Api-Key: sk_1'
  expect([await statusWith(key), await statusWith(key), await statusWith(key)]).toEqual([200, 200, 429])
  const ada = `Authorization: Bearer ${await token('ada')}`
  expect([await statusWith(ada), await statusWith(ada)]).toEqual([200, 429])
  expect(await statusWith(`Authorization: Bearer ${await token('bob')}`)).toBe(200)
  // None of these is known: they are one address, whatever they invent.
  const forged = `Authorization: Bearer ${await token('eve', 'another secret of thirty-two characters')}`
  expect([await statusWith(forged), await statusWith('X-Api-Key: made-up'), await statusWith()]).toEqual([
    200, 429, 429,
  ])
  expect(gateway.logged.join('\n')).not.toContain('sk_1')
})

it('a header names a service only where that connects from', async () => {
  const from = (network: string) =>
    defineConfig({
      policies,
      default: { policy: 'one' },
      identify: [{ internal: { header: 'x-service', from: [network] } }, 'ip'],
    })
  gateway = await startGateway(upstream.url, { config: from('127.0.0.0/8') })
  expect([await statusWith('X-Service: a'), await statusWith('X-Service: b')]).toEqual([200, 200])
  await gateway.close()
  gateway = await startGateway(upstream.url, { config: from('10.0.0.0/8') })
  expect([await statusWith('X-Service: a'), await statusWith('X-Service: b')]).toEqual([200, 429])
})

it('a session is its cookie, also where cookies come in two lines', async () => {
  const config = defineConfig({
    policies,
    default: { policy: 'one' },
    identify: [{ session: { cookie: 'sid', unverified: true } }, 'ip'],
  })
  gateway = await startGateway(upstream.url, { config })
  expect(await statusWith('Cookie: a=b', 'Cookie: sid=1')).toBe(200)
  expect(await statusWith('Cookie: sid=1; a=b')).toBe(429)
  expect(await statusWith('Cookie: sid=2')).toBe(200)
})
