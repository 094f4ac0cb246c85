/** Flags from the environment, and the variables that only look like them. */
import { Command } from 'commander'
import { expect, it } from 'vitest'
import { takeFlagsFrom, unknownVariables } from '../src/cli/flags-from-environment.js'
import { parsePort } from '../src/cli/number-options.js'
import { runHeadgate } from './support/headgate-process.js'

function command(): Command {
  return new Command()
    .option('--port <number>', '', parsePort, 8080)
    .option('--admin-port <number>', '', parsePort, 8082)
    .option('--service <name>')
}

/** What Kubernetes puts into every container of a namespace with services headgate and headgate-admin. */
const SERVICE_LINKS = {
  HEADGATE_SERVICE_HOST: '10.0.0.7',
  HEADGATE_SERVICE_PORT: '8080',
  HEADGATE_SERVICE_PORT_HTTP: '8080',
  HEADGATE_PORT: 'tcp://10.0.0.7:8080',
  HEADGATE_PORT_8080_TCP: 'tcp://10.0.0.7:8080',
  HEADGATE_PORT_8080_TCP_PROTO: 'tcp',
  HEADGATE_PORT_8080_TCP_PORT: '8080',
  HEADGATE_PORT_8080_TCP_ADDR: '10.0.0.7',
  HEADGATE_ADMIN_SERVICE_HOST: '10.0.0.8',
  HEADGATE_ADMIN_PORT: 'tcp://10.0.0.8:8082',
}

it('the service links of Kubernetes are no flags, and nothing to warn of', () => {
  const taken = command()
  takeFlagsFrom(SERVICE_LINKS, taken)
  expect(taken.opts()).toEqual({ port: 8080, adminPort: 8082 })
  expect(unknownVariables(SERVICE_LINKS, taken)).toEqual([])
})

it('a variable that sets no flag is named in one warning, with the one that was probably meant', () => {
  const [line, ...more] = unknownVariables(
    { HEADGATE_ADMIN_PROT: '1', HEADGATE_X: '2', PATH: '/' },
    command(),
  )
  expect(line).toContain('HEADGATE_ADMIN_PROT (did you mean HEADGATE_ADMIN_PORT?)')
  expect(line).toContain('HEADGATE_X')
  expect(line).not.toContain('PATH,')
  expect(more).toEqual([])
})

it.each([
  [['--share', '1/3'], {}, '--share: expected together with --redis'],
  [['--max-calls', '10'], {}, '--max-calls: expected together with --redis'],
  [[], { HEADGATE_DEADLINE: '20' }, 'HEADGATE_DEADLINE: expected together with --redis'],
])('a flag that has no effect without Redis is rejected: %j %j', async (flags, env, message) => {
  const { code, stderr } = await runHeadgate(['serve', '--demo', '--port', '0', ...flags], undefined, env)
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) })
})
