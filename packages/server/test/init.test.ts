import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from 'headgate/config'
import { afterAll, describe, expect, it } from 'vitest'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-init-'))
const file = join(folder, 'headgate.yaml')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('headgate init', () => {
  it('init writes a sound file, and never over another unless told to', async () => {
    const written = await runInProcess(['init', file])
    expect(written).toEqual({
      code: 0,
      out: `${file} is written; try it with: headgate serve --config ${file} --demo\n`,
      err: '',
    })
    expect((await runInProcess(['rules', 'validate', file])).out).toContain(
      'is sound: 5 tiers, 1 policy, 1 rule',
    )
    const explained = await runInProcess(['rules', 'explain', 'POST', '/login', '--config', file])
    expect(explained.out).toContain('route: rule login, policy login: decides')

    writeFileSync(file, 'mine')
    expect(await runInProcess(['init', file])).toEqual({
      code: 2,
      out: '',
      err: `headgate: ${file}: exists already; --force replaces it\n`,
    })
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect(await runInProcess(['init', file, '--force', '--json'])).toMatchObject({
      code: 0,
      out: `${JSON.stringify({ file })}\n`,
    })
    expect(readFileSync(file, 'utf8')).toContain('tiers: default')
  })

  it('the file of init is also sound with every example switched on', async () => {
    const { out } = await runInProcess(['init', '--stdout'])
    const switchedOn = out.replace(/^# (?!yaml-language)/gm, '')
    const config = await parseConfig(switchedOn, 'headgate.yaml')
    expect(config.rules.map(({ name }) => name)).toEqual(['login', 'uploads'])
    expect(config).toMatchObject({
      mode: 'shadow',
      tenant: 'shop',
      upstream: { urls: ['http://127.0.0.1:3000'] },
    })
  })

  it('init says where no file can be', async () => {
    const { code, err } = await runInProcess(['init', join(folder, 'no', 'such', 'folder.yaml')])
    expect(code).toBe(2)
    expect(err).toContain('folder.yaml: expected a place for a file; got ENOENT')
  })
})

const RATELIMIT = `
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: minute, requests_per_unit: 100 }
  - key: remote_address
    value: 192.0.2.7
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: remote_address
    value: 192.0.2.8
    rate_limit: { unlimited: true }
  - key: generic_key
    value: search
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1000 }
  - key: path
    value: /login
    rate_limit: { name: all-logins, unit: second, requests_per_unit: 50, burst: 80 }
    descriptors:
      - key: remote_address
        rate_limit: { window: 10m, requests_per_unit: 5, algorithm: sliding-window-log }
      - key: method
        value: POST
        descriptors:
          - key: user_id
            rate_limit: { unit: day, requests_per_unit: 20 }
  - key: path
    value: /files/*
    rate_limit: { unlimited: true }
  - key: "tenant\\n# x"
    rate_limit: { unit: month, requests_per_unit: 9 }
`

describe('headgate init --from', () => {
  const from = join(folder, 'ratelimit.yaml')

  it('init --from converts the limits of envoyproxy/ratelimit, and lists what it cannot', async () => {
    writeFileSync(from, RATELIMIT)
    const converted = join(folder, 'converted.yaml')
    const { code, out } = await runInProcess(['init', converted, '--from', from])
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('1 of its limits became no rule') })
    const text = readFileSync(converted, 'utf8')
    const { policies, subjects } = await parseConfig(text, 'converted.yaml')
    expect(text.match(/^ {2}- .*$/gm)).toEqual([
      '  - { match: { path: "/login", method: "POST", subject: "user" }, policy: "login-POST-user_id" }',
      '  - { match: { path: "/login", subject: "ip" }, policy: "login-remote_address" }',
      '  - { match: { path: "/files/*" }, tier: unlimited }',
      '  - { match: { path: "/login" }, policy: "all-logins", per: everyone }',
      '  - { match: { subject: "ip" }, policy: "remote_address" }',
      '  - { match: { scope: "search" }, policy: "search", per: everyone }',
    ])
    expect(subjects.get('ip:192.0.2.7')).toMatchObject({ policy: '192-0-2-7' })
    expect(policies['login-remote_address']?.limits).toMatchObject([
      { algorithm: { name: 'sliding-window-log' }, limit: 5, windowUs: 600_000_000 },
    ])
    expect(policies['all-logins']?.limits).toMatchObject([
      { algorithm: { name: 'token-bucket' }, limit: 80, refillPerSecond: 50 },
    ])
    expect(policies.search).toMatchObject({ mode: 'shadow', limits: [{ limit: 1000 }] })
    expect(text).toContain("## - edge: tenant\\n# x: only Envoy's routes know what")
    const explained = async (path: string, subject: string) =>
      (await runInProcess(['rules', 'explain', 'GET', path, '-c', converted, '--subject', subject])).out
    expect(await explained('/else', 'ip:192.0.2.1')).toContain('policy remote_address')
    const exempt = await explained('/else', 'ip:192.0.2.8')
    expect(exempt).not.toContain('policy remote_address')
    expect(exempt).toContain('policy unlimited')
    expect(await explained('/files/a', 'user:1')).toContain('unlimited')
  })

  it('init --from names the place of what is wrong with the file', async () => {
    writeFileSync(from, 'domain: edge\ndescriptors: [{ key: a, rate_limit: { unit: minit } }]\n')
    const { code, err } = await runInProcess(['init', '--stdout', '--from', from])
    expect(code).toBe(2)
    expect(err).toContain('ratelimit.yaml: descriptors[0].rate_limit.unit: expected one of')
    expect((await runInProcess(['init', '--stdout', '--from', join(folder, 'none.yaml')])).code).toBe(2)
  })
})
