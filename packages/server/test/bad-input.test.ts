/** Every command and option with invalid input: the exit code, and a message that names option and expectation. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { type HeadgateProcess, runHeadgate, serveHeadgate } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-bad-input-'))
const policyFile = join(folder, 'headgate.yaml')
writeFileSync(
  policyFile,
  `
policies: { login: { algorithm: sliding-window-log, limit: 3, window: 1h } }
rules: [{ name: login, match: { path: /login }, policy: login }]
`,
)
const shortSecret = join(folder, 'short-secret')
writeFileSync(shortSecret, 'canary\n')

let served: HeadgateProcess
let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
  served = await serveHeadgate('--config', policyFile, '--demo')
})
afterAll(async () => {
  await served.end('SIGTERM')
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Row = readonly [command: string, code: number, message: string]

/** Input that is wrong for every place. `why` stands for the options that `override set` requires. */
const anywhere: readonly Row[] = [
  ['control', 2, 'Usage: headgate control'],
  ['control frob', 2, "unknown command 'frob'"],
  ['control get extra', 2, 'too many arguments'],
  ['control get --multiplier 2', 2, "unknown option '--multiplier'"],
  ['control set', 2, 'control set: expected --on, --off or --multiplier; got none'],
  ['control set --on --off', 2, '--on: expected one of --on and --off; got both'],
  ['control set --on=yes', 2, "unknown option '--on=…'"],
  ['control set --multiplier x', 2, '--multiplier: expected a number; got "x"'],
  ['control set --multiplier 0x10', 2, '--multiplier: expected a number; got "0x10"'],
  ['control set --multiplier 1e3', 2, '--multiplier: expected a number; got "1e3"'],
  ['control set --multiplier NaN', 2, '--multiplier: expected a number; got "NaN"'],
  [
    'control set --multiplier -3',
    2,
    '--multiplier: expected a number from 0 to 1000 with at most 6 decimals; got -3',
  ],
  ['control set --multiplier 1001', 2, '--multiplier: expected a number from 0 to 1000'],
  ['control set --multiplier 0.0000001', 2, '--multiplier: expected a number from 0 to 1000'],
  ['override', 2, 'Usage: headgate override'],
  ['override list extra', 2, 'too many arguments'],
  [
    'override remove',
    2,
    '--subject: expected --subject, --rule, --policy, or --subject and one of these; got none',
  ],
  ['override remove --subject canary', 2, "--subject: expected 'type:id'"],
  [
    'override set --subject user:1 --tier pro --reason x',
    2,
    "required option '--ttl <duration>' not specified",
  ],
  ['override set --subject user:1 --tier pro --ttl 1h', 2, "required option '--reason <text>' not specified"],
  [
    'override set --tier pro why',
    2,
    '--subject: expected --subject, --rule, --policy, or --subject and one of these; got none',
  ],
  [
    'override set --subject user:1 why',
    2,
    '--tier: expected one of --tier, --limit, --ban and numbers of its own',
  ],
  [
    'override set --subject user:1 --tier pro --minute 5 why',
    2,
    '(--minute, --hour, --day, --month, --burst); got several',
  ],
  ['override set --subject canary --tier pro why', 2, "--subject: expected 'type:id'"],
  ['override set --subject apikey: --tier pro why', 2, "--subject: expected 'type:id'"],
  ['override set --subject user:1 --tier gold why', 2, '--tier: expected one of anonymous, free'],
  ['override set --subject user:1 --tier apikey:canary why', 2, 'got "apikey:*"'],
  ['override set --rule nope --tier pro why', 2, '--rule: expected one of login; got "nope"'],
  [
    'override set --rule login --limit log-1h why',
    2,
    '--limit: expected id=units, such as log-1m=500; got "log-1h"',
  ],
  ['override set --rule login --limit =5 why', 2, '--limit: expected id=units'],
  ['override set --rule login --limit a=b=c why', 2, '--limit: expected id=units'],
  ['override set --rule login --limit log-1h=x why', 2, '--limit: expected a number; got "x"'],
  [
    'override set --rule login --limit log-1h=-1 why',
    2,
    '--limit: expected a whole number from 0 to 4294967295; got -1',
  ],
  ['override set --rule login --limit log-9m=1 why', 2, '--limit: expected one of log-1h; got "log-9m"'],
  ['override set --subject user:1 --minute x why', 2, '--minute: expected a number; got "x"'],
  [
    'override set --subject user:1 --minute -1 why',
    2,
    '--minute: expected a whole number from 0 to 4294967295; got -1',
  ],
  ['override set --subject user:1 --hour 1.5 why', 2, '--hour: expected a whole number'],
  ['override set --subject user:1 --day 9999999999 why', 2, '--day: expected a whole number'],
  ['override set --subject user:1 --minute 5 --burst 0.5 why', 2, '--burst: expected a number of at least 1'],
  ['override set --subject user:1 --burst 2 why', 2, '--burst: expected a minute limit to multiply; got 2'],
  [
    'override set --subject user:1 --tier pro --ttl 1x --reason x',
    2,
    "--ttl: expected a duration from '1ms' to '31d'",
  ],
  [
    'override set --subject user:1 --tier pro --ttl 32d --reason x',
    2,
    "to '31d', such as '10s', '1m' or a number of seconds; got \"32d\"",
  ],
  [
    'override set --subject user:1 --tier pro --ttl 0s --reason x',
    2,
    "--ttl: expected a duration from '1ms' to '31d'",
  ],
  [
    'override set --subject user:1 --tier pro --ttl 1h --reason=',
    2,
    '--reason: expected a text of 1 to 200 characters; got ""',
  ],
  [
    'override set --subject user:1 --tier pro --ttl 1h --reason x --by=',
    2,
    '--by: expected a text of 1 to 200 characters; got ""',
  ],
]

function argsOf(command: string): string[] {
  return command
    .split(' ')
    .flatMap(word => (word === 'why' ? ['--ttl', '1h', '--reason', 'x', '--by', 'ada'] : [word]))
}

async function expectRejection(args: readonly string[], code: number, message: string): Promise<void> {
  const result = await runInProcess(args)
  expect(result.err).toContain(message)
  expect({ code: result.code, out: result.out }).toEqual({ code, out: '' })
  expect(result.err).not.toContain('canary')
}

describe('at a server', () => {
  it.each(anywhere)(
    'a command at a server rejects bad input: headgate %s',
    async (command, code, message) => {
      const isIncomplete = /^(control|override)$|frob/.test(command)
      await expectRejection(
        [...argsOf(command), ...(isIncomplete ? [] : ['--server', served.adminUrl])],
        code,
        message,
      )
    },
  )

  it('a rejected command changes nothing at a server', async () => {
    const place = ['--server', served.adminUrl]
    expect((await runInProcess(['override', 'list', ...place])).out).toBe('none\n')
    expect((await runInProcess(['control', 'get', ...place])).out).toBe('limits on, multiplier 1\n')
  })
})

describe('in Redis', () => {
  const needStore = anywhere.filter(([command]) => / (set|remove) /.test(command))
  it.each(needStore)('a command in Redis rejects bad input: headgate %s', async (command, code, message) => {
    await expectRejection([...argsOf(command), '--redis', redis.url, '--config', policyFile], code, message)
  })
})

describe('what is asked', () => {
  it.each<Row>([
    [
      'control get --server nowhere',
      2,
      '--server: expected http://host:port without credentials, such as http://127.0.0.1:8082; got "nowhere"',
    ],
    ['control get --server localhost:8082', 2, '--server: expected http://host:port'],
    ['control get --server ftp://127.0.0.1', 2, '--server: expected http://host:port'],
    ['control get --server http://user:canary@127.0.0.1:8082', 2, 'got one with an @'],
    [
      'control get --server http://127.0.0.1:9',
      3,
      '--server: expected the decision API of a running headgate at http://127.0.0.1:9; got ',
    ],
    ['control get --redis nowhere', 2, '--redis: expected redis://'],
    ['control get --redis http://user:canary@h', 2, '--redis: expected redis://'],
    ['control get --redis redis://h:99999', 2, '--redis: expected hosts as name, name:port'],
    ['control get --redis redis://:canary@127.0.0.1:9', 3, '--redis: redis: not connected '],
    [
      'control get --redis redis://h --server http://h',
      2,
      '--server: expected one of --server and --redis; got both',
    ],
    ['control get --config x.yaml', 2, '--config: expected together with --redis'],
    ['control get --subject-secret-file x', 2, '--subject-secret-file: expected together with --redis'],
    [
      'control get --redis redis://h --config missing.yaml',
      2,
      'missing.yaml: expected a file that can be read; got no such file',
    ],
    [
      'control get --redis redis://h --subject-secret-file missing',
      2,
      '--subject-secret-file: expected a file that can be read; got no such file',
    ],
    [
      `control get --redis redis://h --subject-secret-file ${shortSecret}`,
      2,
      '--subject-secret-file: expected a secret of 16 to 1024 characters; got one of 6',
    ],
  ])('a question with bad input is rejected: headgate %s', async (command, code, message) =>
    expectRejection(argsOf(command), code, message),
  )
})

describe('the other commands', () => {
  it.each<Row>([
    ['frob', 2, "unknown command 'frob'"],
    ['control set --multiplier', 2, "option '-m, --multiplier <number>' argument missing"],
    ['apikey:canary', 2, "unknown command 'apikey:*'"],
    ['redis://user:canary@h', 2, "unknown command 'redis://***@h'"],
    ['serve --redi=redis://user:canary@h', 2, "unknown option '--redi=…'"],
    ['serve --subject-secret=canary', 2, "unknown option '--subject-secret=…'"],
    ['serve --max-headers x', 2, "option '--max-headers <number>' argument 'x' is invalid"],
    ['serve --max-client-connections -1', 2, 'expected a whole number from 0 to'],
    ['serve --max-client-requests 1.5', 2, 'expected a whole number from 0 to'],
    ['serve --max-pipelined 99999999999', 2, 'expected a whole number from 0 to'],
    ['serve --max-upstream-connections x', 2, 'expected a whole number from 0 to'],
    ['serve --min-body-rate x', 2, 'expected a whole number from 0 to'],
    ['serve --response-timeout 1s', 2, 'expected a whole number from 0 to'],
    ['serve --port -1', 2, 'expected a whole number from 0 to 65535'],
    ['init a b', 2, 'too many arguments'],
    ['rules', 2, 'Usage: headgate rules'],
    ['rules validate missing.yaml', 2, 'missing.yaml: expected a file that can be read; got no such file'],
    ['rules validate a b', 2, 'too many arguments'],
    ['rules explain GET', 2, "missing required argument 'path'"],
    [`rules explain GET / --config ${policyFile} --tier gold`, 2, '--tier: expected one of anonymous'],
    [`rules explain GET / --config ${policyFile} --subject canary`, 2, "--subject: expected 'type:id'"],
    [`rules explain GET / --config ${policyFile} --scope=`, 2, '--scope: expected a non-empty string'],
    ['schema extra', 2, 'too many arguments'],
  ])('a command rejects bad input: headgate %s', async (command, code, message) =>
    expectRejection(command.split(' '), code, message),
  )

  it.each<Row>([
    ['--demo --admin-port x', 2, '--admin-port'],
    ['--demo --service a/b', 2, '--service: expected up to 64 letters, digits, _ . or -; got "a/b"'],
    ['--demo --admin-host 0.0.0.0', 2, '--admin-host: expected'],
    ['--demo --upstream http://user:canary@h', 2, '--upstream: expected http://host:port'],
    ['--demo --redis redis//user:canary@h', 2, '--redis: expected redis://'],
    [
      '--demo --subject-secret-file missing',
      2,
      '--subject-secret-file: expected a file that can be read; got no such file',
    ],
    [`--demo --subject-secret-file ${shortSecret}`, 2, '--subject-secret-file: expected a secret of 16'],
  ])('serve rejects bad input: headgate serve %s', async (flags, code, message) => {
    const result = await runHeadgate(['serve', ...flags.split(' ')], folder)
    expect(result.stderr).toContain(message)
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' })
    expect(result.stderr).not.toContain('canary')
  })
})

describe('what answers is not Headgate', () => {
  const servers: Server[] = []
  afterAll(() => {
    for (const server of servers) server.close()
  })

  async function answering(status: number, headers: Record<string, string>, body: string): Promise<string> {
    const server = createServer((_req, res) => res.writeHead(status, headers).end(body))
    servers.push(server)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const COMMANDS = [
    'control get',
    'control set --off',
    'override list',
    'override remove --rule x',
    'override set --rule login --tier pro why',
  ]

  it.each(COMMANDS)(
    'a command at the port of the gateway says that this is not Headgate: headgate %s',
    async command => {
      const message = `what answers is not Headgate's decision API (status 200, application/json)`
      await expectRejection([...argsOf(command), '--server', served.gatewayUrl], 4, message)
    },
  )

  it.each<[string, number, Record<string, string>, string]>([
    ['an empty 200', 200, {}, ''],
    ['JSON of another kind', 200, { 'Content-Type': 'application/json' }, '{"enabled":1}'],
    [
      'a problem of another service',
      400,
      { 'Content-Type': 'application/problem+json' },
      '{"detail":"canary"}',
    ],
    ['a redirect', 302, { Location: 'http://127.0.0.1:9/' }, ''],
    ['a page', 404, { 'Content-Type': 'text/html' }, '<h1>canary</h1>'],
  ])('an answer that is not Headgate’s is reported as such: %s', async (_name, status, headers, body) => {
    const url = await answering(status, headers, body)
    await expectRejection(
      ['control', 'get', '--server', url],
      4,
      `is not Headgate's decision API (status ${status}`,
    )
    await expectRejection(
      ['override', 'list', '--server', url],
      4,
      `is not Headgate's decision API (status ${status}`,
    )
  })

  it('a port that does not speak HTTP is reported as such', async () => {
    const server = createTcpServer(socket => socket.end('-ERR what?\r\n'))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await expectRejection(['control', 'get', '--server', url], 4, 'what answers is not HTTP')
    server.close()
  })
})
