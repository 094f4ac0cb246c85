import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import manifest from '../../package.json' with { type: 'json' }
// @ts-expect-error: plain JavaScript, which packing runs without a build
import { buildPackage } from '../../scripts/build-package.mjs'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))

/** An application outside the workspace that has installed the package as it would be published. */
export interface Consumer {
  readonly folder: string
  write(name: string, text: string): Promise<void>
  /** Runs a script with this Node, in the consumer's folder; rejects with everything it printed if it fails. */
  run(script: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string>
  remove(): Promise<void>
}

const execute = promisify(execFile)

/** Packs a package of the workspace as it would be published, unpacks it into a folder, and resolves to the packed size. */
export async function unpackInto(folder: string, name: string): Promise<number> {
  const tarballs = await mkdtemp(join(tmpdir(), 'headgate-tarball-'))
  const library = join(tarballs, 'library')
  if (name === 'headgate') await buildPackage(library)
  const what = name === 'headgate' ? [library] : ['--workspace', name]
  await execute('npm', ['pack', '--silent', ...what, '--pack-destination', tarballs], { cwd: ROOT })
  const tarball = (await readdir(tarballs)).find(file => file.endsWith('.tgz'))
  if (tarball === undefined) throw new Error('npm pack left no tarball')
  await mkdir(folder, { recursive: true })
  await execute('tar', ['-xzf', join(tarballs, tarball), '-C', folder, '--strip-components=1'])
  const { size } = await stat(join(tarballs, tarball))
  await rm(tarballs, { recursive: true })
  return size
}

/** Packs the library and unpacks it where nothing of the workspace is near. */
export async function installPacked(): Promise<Consumer> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-consumer-'))
  await unpackInto(join(folder, 'node_modules', 'headgate'), 'headgate')
  // Frameworks that an entry point needs, and the types of Node, as the application would have them.
  for (const peer of [...Object.keys(manifest.peerDependencies), '@types/node']) {
    const link = join(folder, 'node_modules', peer)
    await mkdir(dirname(link), { recursive: true })
    await symlink(tool(peer), link)
  }
  return {
    folder,
    async write(name, text) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    },
    run: (script, args, env = {}) => run(script, args, folder, env),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Returns the JavaScript of a command of an installed package. */
export function tool(path: string): string {
  return join(ROOT, 'node_modules', path)
}

/**
 * Returns TypeScript 5, which still has `moduleResolution: node10`: the copy that attw depends on. As a dependency
 * of our own, its `tsc` would replace the current one.
 */
export function typescript5(): string {
  const attw = createRequire(tool('@arethetypeswrong/cli/package.json')).resolve('@arethetypeswrong/core')
  return createRequire(attw).resolve('typescript/bin/tsc')
}

async function run(
  script: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  try {
    const { stdout, stderr } = await execute(process.execPath, [script, ...args], {
      cwd,
      env: { ...process.env, ...env },
    })
    return stdout + stderr
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${script} ${args.join(' ')} failed:\n${stdout}${stderr}`)
  }
}
