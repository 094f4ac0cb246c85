/** Compiles the examples as `npx tsc -p examples` does, but into a folder of its own. */
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdir, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))

/** Returns the folder, which is gone when the process ends. It is below examples/node_modules, so that the packages of the examples are found. */
export async function compileExamples(): Promise<string> {
  const cache = join(ROOT, 'examples/node_modules/.cache')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'compiled-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', join(ROOT, 'examples'), '--outDir', folder])
  return folder
}
