import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { runHeadgate } from './support/headgate-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('--version is the version of the package', async () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  expect(await runHeadgate(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' })
})

test('--help lists the commands', async () => {
  const { code, stdout } = await runHeadgate(['--help'])
  expect(code).toBe(0)
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: headgate [options] [command]

    Rate limiting for HTTP APIs: a gateway, and decisions over HTTP.

    Options:
      -V, --version    print the version
      -h, --help       print this help

    Commands:
      serve [options]  Stand in front of an HTTP service and let through what the
                       policy file allows.
      control          See and change the switches of a whole fleet.
      override         Replace the numbers of a subject or a rule for a time.
      rules            Check a policy file, and ask what it says.
      schema           Print the JSON Schema of a policy file, for editors.
      help [command]   print the help of a command
    "
  `)
})

test('serve --help lists the flags, all of which the reference explains', async () => {
  const { code, stdout } = await runHeadgate(['serve', '--help'])
  expect(code).toBe(0)
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: headgate serve [options]

    Stand in front of an HTTP service and let through what the policy file allows.

    Options:
      -c, --config <file>    policy file (default: "headgate.yaml"; with --demo it
                             may be missing)
      --host <address>       address the gateway listens on (default: "127.0.0.1")
      -p, --port <number>    port the gateway listens on; 0 chooses a free one
                             (default: 8080)
      -u, --upstream <url>   where requests go; takes the place of the one in the
                             file
      --redis <url>          share the limits through Redis; left out: they are kept
                             in this process
      --demo                 use the small built-in upstream if none is configured
      --admin-port <number>  port of the decision API, on 127.0.0.1 always (default:
                             8082)
      -h, --help             print this help
    "
  `)
  const reference = readFileSync(new URL('../../../docs/reference/cli.md', import.meta.url), 'utf8')
  for (const [flag] of stdout.matchAll(/--[a-z-]+/g)) expect(reference).toContain(`\`${flag}`)
})

describe('what was typed wrongly ends with exit code 2 and a message that says what to type', () => {
  test.each<[string[], string]>([
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
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await runHeadgate(args, folder)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  test('a policy file with mistakes, each on its line', async () => {
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

  test('a policy file without an upstream, and no --demo', async () => {
    const file = join(folder, 'no-upstream.yaml')
    writeFileSync(file, 'tiers: default\n')
    const { code, stderr } = await runHeadgate(['serve', '--config', file])
    expect(code).toBe(2)
    expect(stderr).toBe(
      'headgate: upstream: expected one in the policy file or with --upstream, or --demo; got none\n',
    )
  })
})

describe('what fails as it starts ends with exit code 1', () => {
  async function withTakenPort<T>(work: (port: number) => Promise<T>): Promise<T> {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    try {
      return await work((server.address() as AddressInfo).port)
    } finally {
      server.close()
    }
  }

  test.each(['--port', '--admin-port'])('because the port of %s is taken', async flag => {
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
  })

  test('because the address is not of this machine', async () => {
    const { code, stderr } = await runHeadgate(
      ['serve', '--demo', '--host', '192.0.2.1', '--port', '0'],
      folder,
    )
    expect(code).toBe(1)
    expect(stderr).toBe('headgate: 192.0.2.1 is no address of this machine; choose another with --host\n')
  })
})
