/** The files under deploy/ start this version: their flags exist, their ports agree, and they run unprivileged. */
import { readFileSync } from 'node:fs'
import { parseConfig } from 'headgate/config'
import { afterAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { runInProcess } from './support/run-in-process.js'

const read = (name: string) => readFileSync(new URL(`../../../deploy/${name}`, import.meta.url), 'utf8')
const { out: help } = await runInProcess(['serve', '--help'])
const FLAGS = new Set(help.match(/--[a-z-]+/g))
const VARIABLES = new Set(
  [...FLAGS].map(flag => `HEADGATE_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`),
)

/** Returns every flag and variable of ours in a text. */
function used(text: string): { readonly flags: string[]; readonly variables: string[] } {
  return {
    flags: [...text.matchAll(/(?<![\w-])--(?:config|host|port|admin|redis|upstream)[a-z-]*/g)].map(String),
    variables: text.match(/HEADGATE_[A-Z_]+/g) ?? [],
  }
}

let looked = 0
afterAll(() => expect(looked).toBe(4))

it.each(['Containerfile', 'headgate.service', 'kubernetes.yaml', 'compose.yaml'])(
  'the deployment in %s uses flags and variables that exist',
  name => {
    const { flags, variables } = used(read(name))
    expect(flags.filter(flag => !FLAGS.has(flag))).toEqual([])
    expect(variables.filter(variable => !VARIABLES.has(variable))).toEqual([])
    expect(flags.length + variables.length).toBeGreaterThan(0)
    looked++
  },
)

it('the container has the ports of the gateway and the admin port, a user without rights, and no shell', () => {
  const text = read('Containerfile')
  expect(/^EXPOSE (.*)$/m.exec(text)?.[1]).toBe('8080 8082')
  expect(text).toMatch(/^USER 65532:65532$/m)
  expect(text).toMatch(/^FROM gcr\.io\/distroless\/nodejs22-debian12:nonroot$/m)
  expect(/^ENTRYPOINT (.*)$/m.exec(text)?.[1]).toContain(
    '"/app/node_modules/@headgate/server/dist/main.js", "serve"',
  )
})

it('the unit stops with SIGTERM, and has longer for it than stopping takes', () => {
  const text = read('headgate.service')
  expect(text).toMatch(/^KillSignal=SIGTERM$/m)
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1])).toBeGreaterThan(5)
  expect(text).toMatch(/^DynamicUser=yes$/m)
  for (const line of text.split('\n')) expect(line).toMatch(/^(?:|#.*|\[\w+\]|[A-Z]\w+=.*)$/)
})

describe('the manifest for Kubernetes', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml')).map(document => {
    expect(document.errors).toEqual([])
    return document.toJS()
  })
  const byKind = (kind: string) => documents.find(document => document.kind === kind)
  const pod = byKind('Deployment').spec.template.spec
  const [container] = pod.containers
  const portOf = (name: string) =>
    container.ports.find((port: { name: string }) => port.name === name)?.containerPort
  const flag = (name: string) =>
    container.args.find((arg: string) => arg.startsWith(`--${name}=`))?.split('=')[1]

  it('the manifest for Kubernetes has a policy file that is sound', async () => {
    const config = await parseConfig(byKind('ConfigMap').data['headgate.yaml'], 'headgate.yaml')
    expect(config.upstream?.urls).toEqual(['http://app:3000'])
    // A network of pods is no proxy: every pod could say where its requests come from.
    expect(config.trustedProxies).toEqual([])
  })

  it('the manifest for Kubernetes listens where it is probed and sent requests', () => {
    expect([portOf('http'), portOf('admin')]).toEqual([Number(flag('port')), Number(flag('admin-port'))])
    expect(container.livenessProbe.httpGet).toEqual({ path: '/livez', port: 'admin' })
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'admin' })
    expect(byKind('Service').spec.ports[0].targetPort).toBe('http')
    expect(byKind('Service').spec.selector).toEqual(byKind('Deployment').spec.template.metadata.labels)
  })

  it('the manifest for Kubernetes has a token for what is not on loopback, and no rights', () => {
    expect(flag('admin-host')).toBe('0.0.0.0')
    expect(flag('admin-token')).toMatch(/^prometheus:read:file:\/run\/secrets\/headgate\//)
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532 })
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    })
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(2 + 5)
  })
})

it('the compose file shares the limits of two gateways through a Redis that evicts nothing', () => {
  const { services, secrets } = parse(read('compose.yaml'))
  expect(services.headgate.command).toContain('--redis=redis://redis:6379')
  expect(services.redis.command.join(' ')).toContain('--maxmemory-policy noeviction')
  expect(services.headgate.build.dockerfile).toBe('deploy/Containerfile')
  expect(Object.keys(secrets)).toEqual(services.headgate.secrets)
  expect(services.headgate.deploy.replicas).toBe(2)
})
