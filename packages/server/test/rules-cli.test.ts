import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configSchema } from 'headgate/internal'
import { afterAll, describe, expect, it } from 'vitest'
import { runHeadgate } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const EXAMPLE = fileURLToPath(new URL('../../../examples/policy-file/headgate.yaml', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'headgate-rules-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('headgate rules validate', () => {
  it('rules validate sums up a sound file, headgate.yaml if none is named', async () => {
    writeFileSync(join(folder, 'headgate.yaml'), 'mode: enforce\nenforce: 25%\ncosts: { /a: 2 }\n')
    expect(await runHeadgate(['rules', 'validate'], folder)).toEqual({
      code: 0,
      stdout:
        'headgate.yaml is sound: 5 tiers, 0 policies, 0 rules, 0 subjects, 1 cost; mode enforce 25%, levels most-specific\n',
      stderr: '',
    })
  })

  it('rules validate says which changes of a quota start a new period with nothing used', async () => {
    const file = join(folder, 'quota.yaml')
    writeFileSync(
      file,
      'policies:\n  plan:\n    - { algorithm: quota, limit: 10, per: month, timeZone: Europe/Berlin }\n    - { algorithm: sliding-window-log, limit: 5, window: 1m }\n',
    )
    const { out } = await runInProcess(['rules', 'validate', file])
    expect(out.split('\n').slice(1)).toEqual([
      '  policy plan: quota 10 a month in Europe/Berlin: another limit keeps what was used; another per, timeZone, or anchor starts a new period with nothing used',
      '',
    ])
  })

  it('rules validate says which rules let requests wait', async () => {
    const file = join(folder, 'waits.yaml')
    writeFileSync(file, 'rules:\n  - { name: slow, match: { path: /a }, wait: { atMost: 500ms } }\n')
    const { out } = await runInProcess(['rules', 'validate', file])
    expect(out).toContain(
      '\n  rule slow: a request waits for room for at most 500ms, 100 of a caller at once\n',
    )
  })

  it('rules validate reports every mistake, and ends with 2', async () => {
    const file = join(folder, 'bad.yaml')
    writeFileSync(file, 'mode: shadwo\nrules:\n  - { match: { path: login }, policy: api }\n')
    const { code, stdout, stderr } = await runHeadgate(['rules', 'validate', file])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.split('\n')).toEqual([
      `headgate: ${file} cannot be used: 3 problems`,
      expect.stringContaining(`${file}:1:7 mode: expected one of enforce, shadow, compare; got "shadwo"`),
      expect.stringContaining(`${file}:3:22 rules[0].match.path: expected a path`),
      expect.stringContaining(`${file}:3:39 rules[0].policy: expected one that the file defines; got "api"`),
      '',
    ])
  })

  it('rules validate reports parts that never take effect, and ends with 2 under --strict', async () => {
    const file = join(folder, 'idle.yaml')
    writeFileSync(file, 'tiers:\n  anonymous: { minute: 100, hour: 50 }\n')
    const line = `${file}:2:16 tiers.anonymous.minute: never takes effect: 50 in 1h beside it leaves nothing for it to deny`
    const told = await runInProcess(['rules', 'validate', file])
    expect(told).toEqual({
      code: 0,
      out: expect.stringContaining('is sound: 1 tier'),
      err: `headgate: ${line} (WARN_HEADGATE_LIMIT_NEVER_BINDS)\n`,
    })
    const strict = await runInProcess(['rules', 'validate', '--strict', '--json', file])
    expect(strict.code).toBe(2)
    expect(strict.err).toContain('--strict: expected a file without warnings; got 1 warning')
    expect(JSON.parse(strict.out)).toMatchObject({
      warnings: [
        { code: 'WARN_HEADGATE_LIMIT_NEVER_BINDS', line: 2, column: 16, path: 'tiers.anonymous.minute' },
      ],
    })
  })

  it('rules validate reports every window that looks like milliseconds, with its place', async () => {
    const file = join(folder, 'milliseconds.yaml')
    const limit = (window: number) => `{ algorithm: sliding-window-log, limit: 1, window: ${window} }`
    writeFileSync(
      file,
      `policies:\n  a: ${limit(60_000)}\n  b: ${limit(900_000)}\nlevels: all\ndefault: { policy: a }\nglobal: { policy: b }\n`,
    )
    const { code, out, err } = await runInProcess(['rules', 'validate', '--strict', '--json', file])
    expect(code).toBe(2)
    expect(err).toContain('--strict: expected a file without warnings; got 2 warnings')
    expect(JSON.parse(out)).toMatchObject({
      warnings: [
        { code: 'WARN_HEADGATE_WINDOW_IN_SECONDS', line: 2, path: 'policies.a.window' },
        { code: 'WARN_HEADGATE_WINDOW_IN_SECONDS', line: 3, path: 'policies.b.window' },
      ],
    })
  })

  it('rules validate names each source whose callers anybody can make up, which --strict accepts', async () => {
    const file = join(folder, 'mintable.yaml')
    writeFileSync(
      file,
      `identify:
  - apikey: {}
  - session: { cookie: sid, unverified: true }
  - user: { header: x-user, from: everybody, perAddress: off }
  - fingerprint: { perAddress: 3 }
  - ip
`,
    )
    const told = await runInProcess(['rules', 'validate', '--strict', file])
    expect([told.code, told.err]).toEqual([0, ''])
    expect(told.out.split('\n').slice(1)).toEqual([
      '  identify[1] session: anybody can make one up, so all of one address have 10 times the limits of one (perAddress)',
      '  identify[2] user: anybody can make one up, perAddress: off says that you verify it elsewhere',
      '  identify[3] fingerprint: anybody can make one up, so all of one address have 3 times the limits of one (perAddress)',
      '',
    ])
    const { out } = await runInProcess(['rules', 'validate', '--json', file])
    expect(JSON.parse(out).mintable).toEqual([
      { path: 'identify[1]', source: 'session', perAddress: 10 },
      { path: 'identify[2]', source: 'user', perAddress: 'off' },
      { path: 'identify[3]', source: 'fingerprint', perAddress: 3 },
    ])
  })

  it('rules validate warns of services in the network of the proxies, and rejects them under --strict', async () => {
    const file = join(folder, 'overlap.yaml')
    writeFileSync(
      file,
      'trustedProxies: [10.0.0.0/8]\nidentify:\n  - internal: { header: x-service, from: [10.1.0.0/16] }\n  - ip\n',
    )
    const told = await runInProcess(['rules', 'validate', file])
    expect([told.code, told.err]).toEqual([
      0,
      expect.stringMatching(
        /:3:36 identify\[0\]\.internal\.from: 10\.1\.0\.0\/16 is also in trustedProxies: .* \(WARN_HEADGATE_INTERNAL_OF_PROXY\)\n$/,
      ),
    ])
    expect((await runInProcess(['rules', 'validate', '--strict', file])).code).toBe(2)
  })

  it('rules validate says when there is no such file', async () => {
    const { code, stderr } = await runHeadgate(['rules', 'validate', 'missing.yaml'], folder)
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'headgate: missing.yaml: expected a file that can be read; got no such file\n',
    })
  })
})

describe('headgate rules explain', () => {
  const explain = (...args: string[]) => runHeadgate(['rules', 'explain', '--config', EXAMPLE, ...args])

  it('rules explain stores nothing, and is silent about the secret of what it would store', async () => {
    const { code, stdout, stderr } = await explain('GET', '/', '--subject', 'apikey:sk_1')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toContain('WARN_HEADGATE')
  })

  it('rules explain says which rule a request matches, and what it costs', async () => {
    const { code, stdout } = await explain(
      'post',
      '/API/simulation/start?x=1',
      '--subject',
      'user:7',
      '--tier',
      'pro',
    )
    expect(code).toBe(0)
    expect(stdout).toContain('tier pro, cost 10\n')
    expect(stdout).toContain('caller: rule default, policy tier: decides\n')
  })

  it('rules explain never prints an API key', async () => {
    const { code, stdout } = await explain('GET', '/', '--subject', 'apikey:canary', 'ip:192.0.2.9')
    expect(code).toBe(0)
    expect(stdout).toContain('charged to apikey:~')
    expect(stdout).not.toContain('canary')
  })

  it.each([
    [['GET', '/', '--tier', 'gold'], '--tier: expected one of anonymous, free'],
    [['GET', '/', '--subject', 'canary'], "subject: expected 'type:id'"],
    [['/login', 'POST'], 'method: expected one such as GET, then the path; got "/login"'],
    [['POST', 'login'], 'path: expected one that begins with /; got "login"'],
    [['GET'], "missing required argument 'path'"],
  ])('rules explain %j ends with 2', async (args, message) => {
    const { code, stderr } = await explain(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('canary')
  })
})

it('headgate schema prints the schema that the library has', async () => {
  const { code, stdout } = await runHeadgate(['schema'])
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual(configSchema())
})

it.each([
  ['rules', 'validate'],
  ['rules', 'explain'],
  ['schema'],
  ['doctor'],
  ['init'],
  ['control', 'get'],
  ['control', 'set'],
  ['override', 'list'],
  ['override', 'set'],
  ['override', 'remove'],
])('the reference explains every flag that %s %s --help lists', async (...command) => {
  const { code, out } = await runInProcess([...command, '--help'])
  expect(code).toBe(0)
  const reference = readFileSync(new URL('../../../docs/reference/cli.md', import.meta.url), 'utf8')
  expect(reference).toContain(`headgate ${command.join(' ')}`)
  for (const [flag] of out.matchAll(/--[a-z-]+/g)) expect(reference).toContain(`\`${flag}`)
})

it('a short flag means the same in every command', async () => {
  const commands = [
    ['serve'],
    ['rules', 'explain'],
    ['check'],
    ['inspect'],
    ['reset'],
    ['init'],
    ['simulate'],
  ]
  const others = [['top'], ['doctor'], ['control', 'set'], ['override', 'set'], ['functions', 'load']]
  const meanings = new Map<string, Set<string>>()
  for (const command of [...commands, ...others]) {
    const { out } = await runInProcess([...command, '--help'])
    for (const [, short = '', long = ''] of out.matchAll(/^ {2}(-\w), (--[\w-]+)/gm)) {
      meanings.set(short, (meanings.get(short) ?? new Set()).add(long))
    }
  }
  expect([...meanings.keys()]).toContain('-s')
  for (const [short, longs] of meanings) expect([short, ...longs]).toHaveLength(2)
})
