import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { functionLibraryCode } from '../src/store/redis/script-runner.ts'
import { functionLibrary, type Script, scripts } from '../src/store/redis/scripts.gen.ts'
import { type RedisProcess, startRedis } from './support/redis-process.ts'
import { openConnection, type RespConnection } from './support/resp.ts'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const BUILDER = join('scripts', 'build-lua.mjs')
const GENERATED = join('src', 'store', 'redis', 'scripts.gen.ts')

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-lua-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Runs the builder of a package; rejects with its output if it fails. */
async function build(root: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, BUILDER), ...args])
  return stdout
}

/** Copies the builder, with some files overwritten or with only those. */
async function copyWith(
  name: string,
  files: Readonly<Record<string, string>>,
  parts = ['lua', 'scripts', GENERATED],
): Promise<string> {
  const root = join(folder, name)
  for (const part of parts) await cp(join(PACKAGE, part), join(root, part), { recursive: true })
  for (const folder of ['include', 'algorithms']) await mkdir(join(root, 'lua', folder), { recursive: true })
  // Those that every generated file has.
  if (!parts.includes('lua'))
    for (const shared of ['problem', 'test_clock'])
      await cp(join(PACKAGE, 'lua/include', `${shared}.lua`), join(root, 'lua/include', `${shared}.lua`))
  for (const [path, text] of Object.entries(files)) await writeFile(join(root, 'lua', path), text)
  return root
}

const onlyWith = (name: string, files: Readonly<Record<string, string>>) =>
  copyWith(name, files, ['scripts', GENERATED])

/** Imports the scripts of a generated file. */
async function generatedScripts(root: string): Promise<Record<string, Script>> {
  const file = join(root, GENERATED)
  const text = await readFile(file, 'utf8')
  const plain = text
    .replace(/export interface \w+ \{[^}]*\}/g, '')
    .replace(/^(export const \w+): .*? = /gm, '$1 = ')
  await writeFile(join(root, 'scripts.mjs'), plain)
  return (await import(/* @vite-ignore */ join(root, 'scripts.mjs'))).scripts
}

describe('the builder', () => {
  it('the builder has nothing to change: the generated file is what lua/ builds to', async () => {
    await build(PACKAGE, '--check')
  })

  it('the builder says when the generated file is out of date, and brings it up to date', async () => {
    const root = await copyWith('stale', { 'reset.lua': 'return 1\n' })
    await expect(build(root, '--check')).rejects.toThrow('run npm run lua')
    await build(root)
    await build(root, '--check')
    expect((await generatedScripts(root)).reset?.text).toBe('return 1')
  })

  it('the builder puts in files, functions and what an algorithm has, once for each algorithm', async () => {
    const root = await onlyWith('kinds', {
      'asked.lua': `-- @include first
-- @functions
-- @kinds load
local function look_KIND(key_N, NUMBERS)
  -- @load
  -- @deny
  return { STATE }
end
-- @end
local looks = { KINDS }
return looks.one(KEYS[1], 2, 'x')
`,
      'include/first.lua': '-- Left out.\nlocal first = 1\n',
      'algorithms/one.lua': `-- @kind one units name_text
-- @functions
local function twice(n)
  return 2 * n
end
-- @load
local left_N = twice(units_N)
-- @state left_N, name_text_N
`,
      'algorithms/other.lua': '-- @kind other units\n-- @refund\nreturn 0\n-- @state units_N\n',
    })
    await build(root)
    const text = (await generatedScripts(root)).asked?.text ?? ''
    expect(text.split('\n')).toContain('local looks = { one = look_one }')
    expect(await connection.send('EVAL', text, 1, 'key')).toEqual([4, 'x'])
  })

  it('the builder refuses a directive and a section that do not exist, and an algorithm without a name or a state', async () => {
    const directive = await copyWith('directive', { 'odd.lua': '-- @exclude nothing\n' })
    await expect(build(directive)).rejects.toThrow('no directive is called exclude')
    const section = await copyWith('section', { 'algorithms/odd.lua': '-- @kind odd units\n-- @laod\n' })
    await expect(build(section)).rejects.toThrow('odd.lua: no section is called laod')
    const nameless = await copyWith('nameless', { 'algorithms/odd.lua': '-- @kind odd units\n' })
    await expect(build(nameless)).rejects.toThrow('odd.lua: @kind or @state is missing')
  })

  it('the builder carries backticks, template braces, backslashes and quotes over unchanged', async () => {
    const line = `return'\`tick\` \${brace} $$ \\\\ \\n \\'quote\\' "double" æ \\226\\128\\168'`
    const root = await copyWith('escapes', { 'escapes.lua': `${line}\n` })
    await build(root)
    const script = (await generatedScripts(root)).escapes
    expect(script?.text).toBe(line)
    expect(await connection.send('EVAL', script?.text ?? '', 0)).toBe(
      `\`tick\` \${brace} $$ \\ \n 'quote' "double" æ \u2028`,
    )
    expect(await connection.send('SCRIPT', 'LOAD', script?.text ?? '')).toBe(script?.sha)
  })
})

let redis: RedisProcess
let connection: RespConnection

beforeAll(async () => {
  redis = await startRedis()
  connection = await openConnection(redis.port)
})
afterAll(async () => {
  connection?.close()
  await redis?.stop()
})

describe('on a real server', () => {
  it.each(Object.entries(scripts))('%s loads under the hash it was built with', async (_, script) => {
    expect(await connection.send('SCRIPT', 'LOAD', script.text)).toBe(script.sha)
    expect(await connection.send('SCRIPT', 'EXISTS', script.sha)).toEqual([1])
  })

  it('the library of functions loads, beside what is there and over itself', async () => {
    const other = "#!lua name=other\nredis.register_function('other', function() return 1 end)"
    expect(await connection.send('FUNCTION', 'LOAD', other)).toBe('other')
    expect(await connection.send('FUNCTION', 'LOAD', functionLibraryCode())).toBe(functionLibrary)
    expect(await connection.send('FUNCTION', 'LOAD', 'REPLACE', functionLibraryCode())).toBe(functionLibrary)
    // No limits and no questions.
    expect(await connection.send('FCALL', scripts.decide.functionName, 0, '5', '0', '0')).toEqual([5])
    expect(await connection.send('FCALL', scripts.peek.functionName, 0, '5')).toEqual([5])
    expect(await connection.send('FCALL', scripts.refund.functionName, 0, '')).toEqual([])
    expect(await connection.send('FCALL', scripts.reset.functionName, 0, '')).toBe(0)
    expect(await connection.send('FCALL', 'other', 0)).toBe(1)
  })

  it('names of functions change with the code, so that two versions can live on one server', () => {
    for (const { functionName } of Object.values(scripts))
      expect(functionName).toMatch(/^headgate_[0-9a-f]{8}_\w+$/)
    expect(new Set(Object.values(scripts).map(script => script.functionName)).size).toBe(
      Object.keys(scripts).length,
    )
  })
})
