import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect, promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { findFreePort } from '../support/free-port.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { one } from './questions.ts'
import { LIBRARIES, type Library, singleClient } from './topologies.ts'

const SECRET = 'hunter2-canary'

interface Certificate {
  readonly cert: string
  readonly key: string
}

let dir: string
let ca: string

/** Issues a certificate of our own authority for `host`, valid for `days` from now; 0 for an expired one. */
async function issue(name: string, host: string, days: number): Promise<Certificate> {
  const path = (suffix: string) => join(dir, `${name}.${suffix}`)
  const openssl = (...args: string[]) => promisify(execFile)('openssl', args)
  const subject = ['-newkey', 'rsa:2048', '-nodes', '-keyout', path('key'), '-subj', `/CN=${name}`]
  await openssl('req', ...subject, '-out', path('csr'), '-addext', `subjectAltName=${host}`)
  const by = ['-CA', join(dir, 'ca.crt'), '-CAkey', join(dir, 'ca.key'), '-CAcreateserial']
  const until = days > 0 ? ['-days', String(days)] : ['-days', '-1']
  await openssl(
    'x509',
    '-req',
    '-in',
    path('csr'),
    ...by,
    ...until,
    '-copy_extensions',
    'copy',
    '-out',
    path('crt'),
  )
  return { cert: path('crt'), key: path('key') }
}

async function startTls(certificate: Certificate): Promise<{ server: RedisProcess; port: number }> {
  const port = await findFreePort()
  const server = await startRedis({
    args: [
      '--tls-port',
      String(port),
      '--tls-auth-clients',
      'no',
      '--tls-ca-cert-file',
      join(dir, 'ca.crt'),
      '--tls-cert-file',
      certificate.cert,
      '--tls-key-file',
      certificate.key,
    ],
  })
  await sendCommand(server.port, 'CONFIG', 'SET', 'requirepass', SECRET)
  return { server, port }
}

function tlsClient(port: number, library: Library, tls: { ca?: string }) {
  return singleClient(port, {
    ioredis: { tls, password: SECRET },
    nodeRedis: { password: SECRET, socket: { tls: true, ...tls } as object },
  })(library)
}

/** Returns the full text of a failed decision, and everything printed in the meantime. */
async function failure(port: number, library: Library, tls: { ca?: string }): Promise<string> {
  const printed = [vi.spyOn(console, 'error'), vi.spyOn(console, 'warn'), vi.spyOn(console, 'log')]
  for (const spy of printed) spy.mockImplementation(() => {})
  const store = directRedisStore(tlsClient(port, library, tls).client, { deadlineMs: 300 })
  const error = await Promise.resolve(askStore(store, one('user:1'))).then(
    () => 'decided',
    reason => inspect(reason, { depth: 10, showHidden: true }),
  )
  await store.close()
  const output = printed.flatMap(spy => spy.mock.calls)
  for (const spy of printed) spy.mockRestore()
  return `${error}\n${inspect(output, { depth: 10 })}`
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'headgate-tls-'))
  const files = ['-keyout', join(dir, 'ca.key'), '-out', join(dir, 'ca.crt')]
  await promisify(execFile)('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=headgate test',
    ...files,
  ])
  ca = await readFile(join(dir, 'ca.crt'), 'utf8')
})
afterAll(() => rm(dir, { recursive: true, force: true }))

describe('a server whose certificate is good', () => {
  let tls: Awaited<ReturnType<typeof startTls>>
  beforeAll(async () => {
    tls = await startTls(await issue('good', 'IP:127.0.0.1', 2))
  })
  afterAll(() => tls.server.stop())

  it.each(LIBRARIES)(
    'a good certificate is accepted by %s with the authority it was issued by',
    async library => {
      const store = directRedisStore(tlsClient(tls.port, library, { ca }).client, { deadlineMs: 5_000 })
      expect((await askStore(store, one('user:1'))).charged).toBe(0)
      await store.close()
    },
  )

  it.each(LIBRARIES)(
    'a good certificate is rejected by %s without its authority, and no secret is told',
    async library => {
      const text = await failure(tls.port, library, {})
      expect(text).toContain('ERR_HEADGATE_STORE')
      expect(text).toContain('self-signed certificate')
      expect(text).not.toContain(SECRET)
    },
  )

  it.each(LIBRARIES)('a wrong password is rejected, and %s does not reveal it', async library => {
    const wrong = `${SECRET}-wrong`
    const client = singleClient(tls.server.port, {
      ioredis: { password: wrong },
      nodeRedis: { url: `redis://:${wrong}@127.0.0.1:${tls.server.port}` },
    })(library).client
    const said = vi.spyOn(console, 'error').mockImplementation(() => {})
    const store = directRedisStore(client, { deadlineMs: 300 })
    const error = await Promise.resolve(askStore(store, one('user:1'))).catch((reason: unknown) => reason)
    await store.close()
    const text = inspect([error, said.mock.calls], { depth: 10, showHidden: true })
    said.mockRestore()
    expect(text).toContain('ERR_HEADGATE_STORE')
    expect(text).toContain('WRONGPASS')
    expect(text).not.toContain(SECRET)
  })
})

describe.each([
  ['of another host', 'DNS:elsewhere.example', 2, "does not match certificate's altnames"],
  ['that has expired', 'IP:127.0.0.1', 0, 'certificate has expired'],
] as const)('a certificate %s', (what, host, days, reason) => {
  it('the certificate is rejected by every client', async () => {
    const { server, port } = await startTls(await issue(what.replaceAll(' ', '-'), host, days))
    for (const library of LIBRARIES) {
      const text = await failure(port, library, { ca })
      expect(text).toContain('ERR_HEADGATE_STORE')
      expect(text).toContain(reason)
      expect(text).not.toContain(SECRET)
    }
    await server.stop()
  })
})
