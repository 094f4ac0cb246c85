/** The assumptions of the workflows: one version everywhere, immutable actions, existing scripts. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import workspace from '../../../../package.json' with { type: 'json' }
// @ts-expect-error: plain JavaScript, which a release runs without a build
import { placesThatDiffer } from '../../../../scripts/release-version.mjs'
import manifest from '../../package.json' with { type: 'json' }

const FOLDER = new URL('../../../../.github/workflows/', import.meta.url)

interface Step {
  readonly uses?: string
  readonly run?: string
}
interface Workflow {
  readonly permissions?: Record<string, string>
  readonly jobs: Record<string, { steps: Step[]; strategy?: { matrix: Record<string, (string | number)[]> } }>
}

const workflows = readdirSync(FOLDER).map(file => ({
  file,
  workflow: parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Workflow,
}))
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps)

it('both packages, the dependency between them and the code say one version', () => {
  expect(placesThatDiffer(manifest.version)).toEqual([])
  expect(placesThatDiffer('0.0.1')).toHaveLength(4)
})

it('every action is pinned by its hash, and a workflow may only read unless a job says more', () => {
  for (const { file, workflow } of workflows) {
    expect(workflow.permissions, file).toEqual({ contents: 'read' })
    for (const { uses } of stepsOf(workflow)) if (uses) expect(uses, file).toMatch(/@[0-9a-f]{40}$/)
  }
})

it('every script that a workflow runs exists', () => {
  const run = workflows.flatMap(({ workflow }) => [
    ...stepsOf(workflow).flatMap(({ run = '' }) =>
      [...run.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name),
    ),
    ...Object.values(workflow.jobs).flatMap(({ strategy }) => strategy?.matrix.script ?? []),
  ])
  const names = run.map(name => String(name).split(' ')[0] ?? '')
  expect(names.length).toBeGreaterThan(5)
  expect(names.filter(name => !(name in workspace.scripts))).toEqual([])
})

it('npm start installs at most 150 packages, all of which run on this Node', () => {
  const root = fileURLToPath(new URL('../../../../', import.meta.url))
  const clone = mkdtempSync(join(tmpdir(), 'headgate-manifests-'))
  const manifests = workspace.workspaces.map(folder => join(folder, 'package.json'))
  for (const file of ['package.json', 'package-lock.json', '.npmrc', ...manifests])
    cpSync(join(root, file), join(clone, file))
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--dry-run', '--offline']
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: clone, encoding: 'utf8' })
  const packages = stdout.split('\n').filter(line => line.startsWith('add '))
  expect(status, stderr).toBe(0)
  expect(packages.length).toBeGreaterThan(20)
  expect(packages.length).toBeLessThanOrEqual(150)
  expect(stderr).not.toContain('EBADENGINE')
  rmSync(clone, { recursive: true })
})

it('the library is packed only by the script that builds it, and npm pack says so', () => {
  const folder = fileURLToPath(new URL('../../', import.meta.url))
  const { status, stderr } = spawnSync('npm', ['pack', '--dry-run'], { cwd: folder, encoding: 'utf8' })
  expect(status).not.toBe(0)
  expect(stderr).toContain('npm run pack')
})

it('the server cannot be packed in a clone that was not built, and says what to do', () => {
  const root = fileURLToPath(new URL('../../../../', import.meta.url))
  const clone = mkdtempSync(join(tmpdir(), 'headgate-unbuilt-'))
  const folder = join(clone, 'packages', 'server')
  mkdirSync(folder, { recursive: true })
  cpSync(join(root, 'scripts', 'require-build.mjs'), join(clone, 'scripts', 'require-build.mjs'))
  cpSync(join(root, 'packages', 'server', 'package.json'), join(folder, 'package.json'))
  const { status, stderr } = spawnSync('npm', ['pack'], { cwd: folder, encoding: 'utf8' })
  expect(status).not.toBe(0)
  expect(stderr).toContain('run npm run build first')
  expect(readdirSync(folder)).toEqual(['package.json'])
  rmSync(clone, { recursive: true })
})
