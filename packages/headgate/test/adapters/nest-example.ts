/** Compiles examples/nest and runs it, with the workspace's NestJS or an older one. */
import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ServerUnderTest } from '../../src/testing/adapters/adapter-law.ts'
import { compileExamples } from '../support/compiled-examples.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const LIBRARY = join(ROOT, 'packages/headgate')

let compiled: Promise<string> | undefined

export async function startNestExample(version: '12' | '11', platform: string): Promise<ServerUnderTest> {
  compiled ??= compileExamples()
  const built = join(await compiled, 'nest')
  const folder = version === '11' ? await besideNest11(built) : null
  const server = spawn(process.execPath, [join(folder ?? built, 'app.js'), platform, '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>(resolve => server.once('exit', () => resolve()))
  const close = async () => {
    server.kill()
    await ended
    if (folder !== null) await rm(folder, { recursive: true, force: true })
  }
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith('http://')) return { url: line, close }
  }
  throw new Error('the example ended before it listened')
}

/** Creates a folder in which the app and the library find NestJS 11, as in an app that installed it. */
async function besideNest11(built: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-nest-11-'))
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, 'headgate'), { recursive: true })
  await cp(join(LIBRARY, 'dist'), join(modules, 'headgate/dist'), { recursive: true })
  await cp(join(LIBRARY, 'package.json'), join(modules, 'headgate/package.json'))
  await symlink(join(ROOT, 'compat/nest-11/node_modules/@nestjs'), join(modules, '@nestjs'))
  await cp(built, folder, { recursive: true })
  await cp(join(ROOT, 'examples/package.json'), join(folder, 'package.json'))
  return folder
}
