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
  await mkdir(join(root, 'lua', 'include'), { recursive: true })
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
    .replace(/export interface Script \{[^}]*\}/, '')
    .replace(/\} as const satisfies [^\n]*/, '}')
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

  it('the builder rejects includes that include each other, and names them', async () => {
    const root = await copyWith('cycle', {
      'loop.lua': '-- @include first\nreturn 1\n',
      'include/first.lua': '-- @include second\nlocal first = 1\n',
      'include/second.lua': '-- @include first\nlocal second = 2\n',
    })
    const cycle = 'include cycle: loop.lua -> include/first.lua -> include/second.lua -> include/first.lua'
    await expect(build(root)).rejects.toThrow(cycle)
  })

  it('the builder rejects a file that includes itself, and one that does not exist', async () => {
    const self = await copyWith('self', {
      'loop.lua': '-- @include own\nreturn 1\n',
      'include/own.lua': '-- @include own\nlocal own = 1\n',
    })
    await expect(build(self)).rejects.toThrow('include cycle')
    const missing = await copyWith('missing', { 'lost.lua': '-- @include nowhere\nreturn 1\n' })
    await expect(build(missing)).rejects.toThrow('include/nowhere.lua')
  })

  it('the builder includes a file once, however many ask for it', async () => {
    const root = await onlyWith('twice', {
      'twice.lua': '-- @include left\n-- @include right\nreturn shared\n',
      'include/left.lua': '-- @include shared\nlocal left = shared\n',
      'include/right.lua': '-- @include shared\nlocal right = shared\n',
      'include/shared.lua': 'local shared = 1\n',
    })
    await build(root)
    expect((await generatedScripts(root)).twice?.text).toBe('local a=1\nlocal b=a\nlocal c=a\nreturn a')
  })

  it('the builder puts a fragment in place as often as it is asked for, and leaves it out of its file', async () => {
    const root = await onlyWith('fragments', {
      'parts.lua': '-- @include count(left)\n-- @inline count.up\nreturn left\n',
      'include/count.lua':
        'local ALGORITHM = 0\n-- @inline count.up\n-- @fragment count.up\nleft = left + 1\n',
    })
    await build(root)
    expect((await generatedScripts(root)).parts?.text).toBe('local a=0\na=a+1\na=a+1\nreturn a')
  })

  it('the builder rejects fragments that hold each other, one that is nowhere, and two of one name', async () => {
    const cycle = await copyWith('fragment-cycle', {
      'loop.lua': '-- @inline one.part\n',
      'include/loop.lua':
        '-- @fragment one.part\n-- @inline other.part\n-- @fragment other.part\n-- @inline one.part\n',
    })
    await expect(build(cycle)).rejects.toThrow(
      'include cycle: loop.lua -> one.part -> other.part -> one.part',
    )
    const missing = await copyWith('fragment-missing', { 'lost.lua': '-- @inline no.where\n' })
    await expect(build(missing)).rejects.toThrow('no fragment is called no.where')
    const twice = await copyWith('fragment-twice', {
      'include/one.lua': '-- @fragment same.name\n',
      'include/two.lua': '-- @fragment same.name\n',
    })
    await expect(build(twice)).rejects.toThrow('two fragments are called same.name')
  })

  it('the builder shortens names it knows to be ours alike everywhere, and leaves those of Redis and of Lua', async () => {
    const root = await onlyWith('names', {
      'names.lua': `local fields, floor, err = { fields = 1, kept = - -2 }, 3, 4 -- fields
local function sum(first, ...)
  for index, other in ipairs({ ... }) do
    first = first .. '--fields' .. other .. 1 .. index
  end
  return first
end
local reply = redis.pcall('GET', KEYS[1])
return { sum(fields.fields, fields.kept), math.floor(floor + 0.5), err, reply.err and 'no fields' }
`,
    })
    await build(root)
    const text = (await generatedScripts(root)).names?.text ?? ''
    expect(text).toBe(
      [
        'local a,floor,err={a=1,kept=- -2},3,4',
        'local function f(b,...)',
        'for c,d in ipairs({...})do',
        "b=b..'--fields'..d..1 ..c",
        'end',
        'return b',
        'end',
        "local e=redis.pcall('GET',KEYS[1])",
        "return{f(a.a,a.kept),math.floor(floor+0.5),err,e.err and'no fields'}",
      ].join('\n'),
    )
    await connection.send('HSET', 'a hash', 'field', 'value')
    expect(await connection.send('EVAL', text, 1, 'a hash')).toEqual(['1--fields211', 3, 4, 'no fields'])
  })

  it('the builder rejects Lua it cannot shorten', async () => {
    const root = await copyWith('long-text', { 'long.lua': 'return [[\nlong\n]]\n' })
    await expect(build(root)).rejects.toThrow('cannot shorten [[ in: return [[')
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
    for (const { functionName } of [scripts.decide, scripts.peek]) {
      expect(await connection.send('FCALL', functionName, 0, '5', '0')).toEqual([5])
    }
    expect(await connection.send('FCALL', scripts.refund.functionName, 0, '', '0')).toEqual([])
    expect(await connection.send('FCALL', scripts.reset.functionName, 0, '', '0')).toBe(0)
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
