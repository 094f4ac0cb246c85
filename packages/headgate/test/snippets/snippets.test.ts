/** Compiles every program of the documentation, with a reader's compiler and settings. */
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'

const ROOT = new URL('../../../../', import.meta.url)
/** Imports are found as in an app, and nothing is committed. */
const FOLDER = new URL('../../node_modules/.snippets/', import.meta.url)
const COMPILER = fileURLToPath(new URL('node_modules/typescript/bin/tsc', ROOT))

const SETTINGS = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2023',
    lib: ['ES2023', 'DOM'],
    types: ['node'],
    noEmit: true,
    // Handlers of an app that a page only mentions have no types.
    strict: true,
    noImplicitAny: false,
    skipLibCheck: true,
    experimentalDecorators: true,
  },
  include: ['*.ts', '../../test/snippets/taken-for-granted.d.ts'],
}

async function pages(): Promise<string[]> {
  const docs = await readdir(new URL('docs/', ROOT), { recursive: true })
  const ofDocs = docs
    .filter(name => name.endsWith('.md') && !name.startsWith('adr/'))
    .map(name => `docs/${name}`)
  return ['README.md', 'CONTRIBUTING.md', 'packages/headgate/README.md', ...ofDocs]
}

/** Packages that pages name but that are not installed here. */
const ELSEWHERE = `declare module '@valkey/valkey-glide' {
  interface GlideClient {
    customCommand(args: string[]): Promise<unknown>
    close(): void
  }
  type GlideClusterClient = GlideClient
}
declare module 'your-framework' {
  type Call = any
}
`

/** Each in a file of its own, named after its page and first line. */
async function writeSnippets(): Promise<string[]> {
  const written: string[] = []
  for (const page of await pages()) {
    const text = await readFile(new URL(page, ROOT), 'utf8')
    for (const { 1: code = '', index } of text.matchAll(/^```(?:ts|js)\n([\s\S]*?)^```/gm)) {
      const line = text.slice(0, index).split('\n').length
      const name = `${page.replace(/\W+/g, '-')}-line-${line}.ts`
      await writeFile(new URL(name, FOLDER), `${code}\nexport {}\n`)
      written.push(name)
    }
  }
  return written
}

let snippets: string[]
beforeAll(async () => {
  await rm(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER, { recursive: true })
  await writeFile(new URL('tsconfig.json', FOLDER), JSON.stringify(SETTINGS))
  await writeFile(new URL('elsewhere.d.ts', FOLDER), ELSEWHERE)
  snippets = await writeSnippets()
})
afterAll(() => rm(FOLDER, { recursive: true, force: true }))

async function compile(): Promise<string[]> {
  const cwd = fileURLToPath(FOLDER)
  const output = await promisify(execFile)(process.execPath, [COMPILER, '--pretty', 'false', '-p', '.'], {
    cwd,
  }).catch((error: { stdout: string }) => error)
  return output.stdout.split('\n').filter(line => line.includes('error TS'))
}

it('every program that the documentation shows compiles, and one that does not is noticed', async () => {
  expect(snippets.length).toBeGreaterThan(50)
  await writeFile(new URL('wrong.ts', FOLDER), "import { nothing } from 'headgate'\nnothing()\n")
  expect(await compile()).toEqual([expect.stringContaining('wrong.ts(1,10)')])
}, 120_000)
