import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { runHeadgate } from './support/headgate-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('--version is the version of the package', async () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  expect(await runHeadgate(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' })
})

it('npm can link the command of a clone before it is built, because its file is no part of the build', () => {
  const { bin } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  expect(bin.headgate).not.toContain('dist/')
  const command = fileURLToPath(new URL(`../${bin.headgate}`, import.meta.url))
  expect(execFileSync(command, ['--version'], { encoding: 'utf8' })).toMatch(/^\d+\.\d+\.\d+\n$/)
})

it('--help lists the commands', async () => {
  const { code, stdout } = await runHeadgate(['--help'])
  expect(code).toBe(0)
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: headgate [options] [command]

    Rate limiting for HTTP APIs: a gateway, and decisions over HTTP.

    Options:
      -V, --version                       print the version
      -h, --help                          print this help

    Commands:
      serve [options]                     Stand in front of an HTTP service and let
                                          through what the policy file allows.
      init [options] [file]               Write a first policy file, with comments
                                          that explain every part.
      control                             See and change the switches of a whole
                                          fleet.
      override                            Replace the numbers of a subject, a rule
                                          or a policy for a time.
      why [options] <id>                  Say why a request was denied, by the
                                          reference in its body or its X-Request-Id.
      restore [options]                   Write switches and overrides back to a
                                          Redis that has lost them.
      top [options]                       Show who is denied most, once a second.
      watch [options]                     Show decisions, denials and latency, once
                                          a second.
      doctor [options]                    Check whether a Redis is fit for limits:
                                          version, eviction, latency, clock, rights,
                                          functions.
      rules                               Check a policy file, or see what it does
                                          to a request.
      schema                              Print the JSON Schema of a policy file,
                                          for editors.
      simulate [options] [log]            Replay an access log against a policy
                                          file, and show who would have been denied,
                                          when and how often.
      check [options] <subject>           Ask for a decision, as an app would, and
                                          charge it.
      inspect [options] <subject>         Show what a subject has used of each
                                          limit, when it is free again, and where
                                          that is stored.
      reset [options] <subject>           Clear what a subject has used: everything,
                                          or one policy or tier.
      usage [options] <subject>           Show what a subject has used of its
                                          quotas, in this period and the one before.
      credit [options] <subject> <units>  Add units to the quotas of a policy or
                                          tier. The same id credits once.
      functions                           Manage Redis Functions, for stores that
                                          use them instead of scripts.
      completion <shell>                  Print a script that completes commands,
                                          flags and their values in your shell.
      help [command]                      print the help of a command
    "
  `)
})

it.each([['why', 'k7qf2m9xabcd'], ['restore']])(
  '%s asks a running server: flags for Redis are neither offered nor taken',
  async (...command) => {
    const { stdout } = await runHeadgate([...command, '--help'])
    expect(stdout).toContain('--server')
    for (const flag of ['--redis', '--config', '--subject-secret-file']) {
      expect(stdout).not.toContain(flag)
      const { code, stderr } = await runHeadgate([...command, flag, 'x'])
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: expect.stringContaining(`unknown option '${flag}'`),
      })
    }
  },
)

it('usage export is a command of its own, with its own flags', async () => {
  const of = async (...command: string[]) => (await runHeadgate([...command, '--help'])).stdout
  const [usage, exported] = await Promise.all([of('usage'), of('usage', 'export')])
  expect(usage).toMatch(/^Commands:\n {2}export /m)
  expect(usage).not.toContain('--period')
  expect(exported).toContain('--period')
  expect(exported).not.toMatch(/--json|--scope/)
  for (const wrong of [
    ['user:42', '--period', 'previous'],
    ['export', '--policy', 'plan', '--json'],
    ['export'],
  ]) {
    expect((await runHeadgate(['usage', ...wrong])).code).toBe(2)
  }
})

it('the help of credit and of usage export marks what is required', async () => {
  const required = async (...command: string[]) => {
    const { stdout } = await runHeadgate([...command, '--help'])
    return [...stdout.matchAll(/(--[a-z-]+) <\w+>\s+[^\n]*required/g)].map(([, flag]) => flag)
  }
  expect(await required('credit')).toEqual(['--id', '--policy', '--tier'])
  expect(await required('usage', 'export')).toEqual(['--config', '--policy', '--tier'])
})

it('serve --help lists the flags, all of which the reference explains', async () => {
  const { code, stdout } = await runHeadgate(['serve', '--help'])
  expect(code).toBe(0)
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: headgate serve [options]

    Stand in front of an HTTP service and let through what the policy file allows.

    Options:
      -c, --config <file>                  policy file (default: "headgate.yaml";
                                           with --demo it may be missing)
      --host <address>                     address the gateway listens on (default:
                                           "127.0.0.1")
      -p, --port <number>                  port the gateway listens on; 0 chooses a
                                           free one (default: 8080)
      --workers <number>                   processes that serve the gateway and
                                           Envoy; more than one needs --redis
                                           (default: 1)
      --tls-cert <file>                    certificate of the gateway, with its
                                           chain, in PEM
      --tls-key <file>                     its key, in PEM
      -u, --upstream <url>                 where requests go; replaces the one in
                                           the file
      --upstream-ca <file>                 an authority to trust for https
                                           upstreams, in PEM
      --service <name>                     the name of this program, if several
                                           programs share a Redis
      --subject-secret-file <file>         file with the secret for hashing API
                                           keys, 16 characters or more
      --log-format <format>                lines for people, or JSON (choices:
                                           "text", "json", default: "text")
      --access-log                         write a line for every request
      --demo                               use the small built-in upstream if none
                                           is configured
      --redis <url>                        share the limits through Redis (default:
                                           keep them in this process)
      --redis-ca <file>                    an authority to trust for rediss://, in
                                           PEM
      --deadline <ms>                      how long Redis may take before a request
                                           is decided without it (default: 30)
      --breaker-failures <number>          failed calls in a row that open the
                                           breaker (default: 5)
      --probe-after <ms>                   the longest time until it is tried again
                                           (default: 500)
      --max-calls <number>                 the most calls to Redis per second;
                                           requests beyond that are decided without
                                           it
      --share <part/of>                    this region's part of every limit, such
                                           as 1/3, if each region has its own Redis
      --functions                          use Redis Functions instead of scripts
                                           (Redis 7)
      --admin-host <address>               address of the admin port; any but
                                           loopback needs a token (default:
                                           "127.0.0.1")
      --admin-port <number>                port for decisions, operators and probes;
                                           0 chooses a free one (default: 8082)
      --admin-token <name:role:source...>  who may call the admin port: role check,
                                           read or administer; secret from file:path
                                           or env:VARIABLE
      --admin-name <name...>               host names under which the admin port may
                                           be called, beside addresses
      --metrics-public                     metrics need no token
      --show-subjects                      show operators full names instead of
                                           masked ones
      --alert <name=threshold...>          another threshold, or off:
                                           denial-rate=0.1 latency=50 store-down=60
                                           spike=5; budgets: budget-operations,
                                           budget-memory; how long it must be
                                           exceeded to fire and kept to end:
                                           latency=50,60s,120s
      --alert-webhook <source>             call a webhook in Slack's JSON format;
                                           its address from file:path or
                                           env:VARIABLE
      --ratelimit-config <path>            answer Envoy's rate limit protocol from
                                           this envoyproxy/ratelimit file, or a
                                           folder of them
      --ratelimit-shadow                   tell Envoy that every request may pass,
                                           whatever its limits say
      --ratelimit-headers                  make Envoy add RateLimit-Limit,
                                           -Remaining and -Reset to responses
      --ratelimit-metadata                 return the question and the metadata of
                                           its limits to Envoy
      --grpc-host <address>                address Envoy's rate limit service
                                           listens on (default: "127.0.0.1")
      --grpc-port <number>                 port Envoy's rate limit service listens
                                           on; 0 chooses a free one (default: 8081)
      --grpc-tls-cert <file>               certificate of the rate limit service, in
                                           PEM (default: no TLS)
      --grpc-tls-key <file>                its private key
      --grpc-client-ca <file>              authority that must have signed the
                                           certificates of clients
      --max-headers <number>               headers of a request; more get 431; 0: no
                                           bound (default: 100)
      --max-client-connections <number>    connections of one address, except
                                           trusted proxies; more are closed; 0: no
                                           bound (default: 256)
      --max-client-requests <number>       requests of one client in progress at
                                           once; more get 429; 0: no bound (default:
                                           128)
      --max-pipelined <number>             requests of one connection in progress at
                                           once; it closes after them; 0: no bound
                                           (default: 16)
      --max-upstream-connections <number>  requests in progress at the upstream at
                                           once; more get 503; 0: no bound (default:
                                           512)
      --min-body-rate <number>             bytes per second of a body; slower for 10
                                           s gets 408; 0: no bound (default: 256)
      --response-timeout <seconds>         how long a client may leave its response
                                           unread before it is cut off; 0: no bound
                                           (default: 30)
      --drain-delay <duration>             on SIGTERM, how long to be not ready and
                                           still serve (default: 0s)
      --drain-timeout <duration>           then, how long requests in flight may
                                           take before they are cut (default: 30s)
      -h, --help                           print this help

    Every flag may be set in the environment: --admin-port as HEADGATE_ADMIN_PORT.

    Examples:
      headgate serve --demo
      headgate serve --upstream http://127.0.0.1:3000 --redis redis://127.0.0.1:6379 --workers 4
      headgate serve --host 0.0.0.0 --admin-host 0.0.0.0 --admin-token prometheus:read:file:/run/secrets/prometheus
    "
  `)
  const reference = readFileSync(new URL('../../../docs/reference/cli.md', import.meta.url), 'utf8')
  for (const [flag] of stdout.matchAll(/--[a-z-]+/g)) expect(reference).toContain(`\`${flag}`)
})

describe('a mistyped command ends with exit code 2 and a message that says what to type', () => {
  it.each<[string[], string]>([
    [[], 'Usage: headgate'],
    [['sevre'], "unknown command 'sevre'\n(Did you mean serve?)"],
    [['serve', '--prot', '1'], "unknown option '--prot'\n(Did you mean --port?)"],
    [['serve', 'extra'], 'too many arguments'],
    [['serve', '--port', '65536'], 'expected a whole number from 0 to 65535; got "65536"'],
    [
      ['serve', '--config', 'missing.yaml'],
      'missing.yaml: expected a file that can be read; got no such file',
    ],
    [['serve'], 'headgate.yaml: expected a file that can be read; got no such file'],
    [['serve', '--demo', '--upstream', 'ftp://x'], '--upstream: expected http://host:port'],
  ])('a mistyped command ends with exit code 2 and says what to type: %j', async (args, message) => {
    const { code, stdout, stderr } = await runHeadgate(args, folder)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('a policy file with mistakes ends with exit code 2, each mistake on its line', async () => {
    const file = join(folder, 'bad.yaml')
    writeFileSync(file, 'tiers: default\ndefault: { tier: anonymos }\nupsteam: http://127.0.0.1:1\n')
    const { code, stderr } = await runHeadgate(['serve', '--config', file])
    expect(code).toBe(2)
    expect(stderr.split('\n')).toEqual([
      `headgate: ${file} cannot be used: 2 problems`,
      expect.stringContaining(`  ${file}:2:18 default.tier: expected one of anonymous, free`),
      expect.stringContaining(`  ${file}:3:1 upsteam: expected one of prefix`),
      '',
    ])
  })

  it('a policy file without an upstream ends with exit code 2 where --demo is not given', async () => {
    const file = join(folder, 'no-upstream.yaml')
    writeFileSync(file, 'tiers: default\n')
    const { code, stderr } = await runHeadgate(['serve', '--config', file])
    expect(code).toBe(2)
    expect(stderr).toBe(
      'headgate: upstream: expected one in the policy file or with --upstream, or --demo; got none\n',
    )
  })
})

describe('a failing start ends with exit code 1', () => {
  async function withTakenPort<T>(work: (port: number) => Promise<T>): Promise<T> {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      return await work((server.address() as AddressInfo).port)
    } finally {
      server.close()
    }
  }

  it.each(['--port', '--admin-port'])(
    'a start fails with exit code 1 because the port of %s is taken',
    async flag => {
      const other = flag === '--port' ? '--admin-port' : '--port'
      await withTakenPort(async port => {
        const { code, stdout, stderr } = await runHeadgate(
          ['serve', '--demo', other, '0', flag, String(port)],
          folder,
        )
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
        expect(stderr).toBe(
          `headgate: port ${port} on 127.0.0.1 is already in use; choose another with ${flag}\n`,
        )
      })
    },
  )

  it('a start fails with exit code 1 because the address is not of this machine', async () => {
    const { code, stderr } = await runHeadgate(
      ['serve', '--demo', '--host', '192.0.2.1', '--port', '0'],
      folder,
    )
    expect(code).toBe(1)
    expect(stderr).toBe('headgate: 192.0.2.1 is no address of this machine; choose another with --host\n')
  })
})

it('a command whose reader goes away ends without a trace', () => {
  const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
  const { stdout, stderr } = spawnSync('sh', [
    '-c',
    '"$0" "$1" functions print | head -n 1',
    process.execPath,
    main,
  ])
  expect({ lines: `${stdout}`.split('\n').length, stderr: `${stderr}` }).toEqual({ lines: 2, stderr: '' })
})
