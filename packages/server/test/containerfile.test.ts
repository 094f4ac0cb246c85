/** Runs the steps of the image's build, with plain folders as its file systems, and the program that comes out of it. */
import { execFileSync, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, matchesGlob, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))
const read = (path: string) => readFileSync(join(REPOSITORY, path), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'headgate-image-'))
chmodSync(folder, 0o755)
afterAll(() => rmSync(folder, { recursive: true, force: true }), 300_000)

/** One stage: its file system, and what its instructions have set. */
interface Stage {
  readonly root: string
  cwd: string
  readonly env: Record<string, string>
  entrypoint: string[]
  user: string
}

const ignored = read('.dockerignore')
  .split('\n')
  .filter(line => line !== '' && !line.startsWith('#'))

/** Whether a path of the repository is sent to the build. */
function isSent(path: string): boolean {
  const parents = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))
  return !parents.some(part => ignored.some(pattern => part === pattern || matchesGlob(part, pattern)))
}

/**
 * Installing takes a minute of processor time, and is what this repository was installed with: unless everything is to be
 * tested, what it made is linked.
 */
const INSTALL = 'npm ci --ignore-scripts'
const LINKED = ['.', 'packages/headgate', 'packages/server', 'packages/dashboard', 'bench', 'examples']
  .map(place => join(place, 'node_modules'))
  .filter(path => existsSync(join(REPOSITORY, path)))
  .map(
    path =>
      `{ cp -al ${join(REPOSITORY, path)} ${path} 2>/dev/null || cp -a ${join(REPOSITORY, path)} ${path}; }`,
  )
  .join(' && ')

/** Has a command see the folder where it names the root. */
const inside = (stage: Stage, text: string) =>
  (process.env.HEADGATE_LONG === '1' ? text : text.replace(INSTALL, LINKED)).replace(
    /(?<![\w.:/])\/(?=(?:app|build)\b)/g,
    `${stage.root}/`,
  )

function run(instructions: readonly (readonly [name: string, rest: string])[]): Stage {
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  for (const [name, rest] of instructions) {
    if (name === 'FROM') {
      const [, label = 'last'] = / AS (\w+)$/.exec(rest) ?? []
      const root = join(folder, label)
      mkdirSync(root)
      stage = { root, cwd: '/', env: {}, entrypoint: [], user: '' }
      stages.set(label, stage)
      continue
    }
    if (stage === undefined) throw new Error(`${name} before FROM`)
    const { root, env } = stage
    if (name === 'WORKDIR') {
      stage.cwd = rest
      mkdirSync(join(root, rest), { recursive: true })
    } else if (name === 'COPY') copy(stages, stage, rest)
    else if (name === 'RUN') {
      const stdio: StdioOptions = ['ignore', 'ignore', 'inherit']
      const options = { cwd: join(root, stage.cwd), stdio }
      const own = { npm_config_prefer_offline: 'true', npm_config_update_notifier: 'false' }
      execFileSync('sh', ['-ec', inside(stage, rest)], {
        ...options,
        env: { ...process.env, ...env, ...own },
      })
    } else if (name === 'ENV') {
      for (const [, key = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) env[key] = value
    } else if (name === 'USER') stage.user = rest
    else if (name === 'ENTRYPOINT') stage.entrypoint = JSON.parse(rest)
    else expect(['EXPOSE', 'STOPSIGNAL']).toContain(name)
  }
  return stage as Stage
}

function copy(stages: ReadonlyMap<string, Stage>, stage: Stage, rest: string): void {
  const [, from] = /^--from=(\w+) /.exec(rest) ?? []
  const [source = '', target = ''] = rest.replace(/^--\S+ /, '').split(' ')
  const to = join(stage.root, resolve(stage.cwd, target))
  if (from !== undefined) {
    cpSync(join(stages.get(from)?.root ?? '', source), to, { recursive: true })
    return
  }
  expect([source, target]).toEqual(['.', '.'])
  cpSync(REPOSITORY, to, {
    recursive: true,
    preserveTimestamps: true,
    filter: path => path === REPOSITORY || isSent(relative(REPOSITORY, path)),
  })
}

const steps = read('deploy/Containerfile')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter(line => line !== '' && !line.startsWith('#'))
  .map((line): [string, string] => [line.split(' ', 1)[0] ?? '', line.slice(line.indexOf(' ') + 1).trim()])

it('the image can be built, and what is in it serves as a user without rights', {
  timeout: 600_000,
}, async () => {
  const image = run(steps)
  expect(existsSync(join(folder, 'build/build/.git'))).toBe(false)
  expect(readdirSync(image.root)).toEqual(['app'])
  expect(image.user).toBe('65532:65532')
  const config = join(image.root, image.env.HEADGATE_CONFIG ?? '')
  mkdirSync(dirname(config), { recursive: true })
  writeFileSync(config, 'tiers: default\n')
  const [node = '', main = '', ...args] = image.entrypoint
  expect(node).toBe('/nodejs/bin/node')
  const isRoot = process.getuid?.() === 0
  const child = spawn(
    process.execPath,
    [join(image.root, main), ...args, '--demo', '--port=0', '--admin-port=0'],
    {
      cwd: image.root,
      env: { PATH: process.env.PATH, ...image.env, HEADGATE_CONFIG: config },
      stdio: ['ignore', 'pipe', 'inherit'],
      ...(isRoot && { uid: 65_532, gid: 65_532 }),
    },
  )
  let out = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  await expect.poll(() => out, { timeout: 30_000 }).toContain('Stop with Ctrl-C')
  const urlOf = (name: string) => new RegExp(`${name} +(http://\\S+)`).exec(out)?.[1] ?? ''
  expect((await fetch(urlOf('gateway').replace('0.0.0.0', '127.0.0.1'))).status).toBe(200)
  const admin = urlOf('decision API')
  expect((await fetch(`${admin}/readyz`)).status).toBe(200)
  expect(await (await fetch(`${admin}/`)).text()).toContain('<html')
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
})
