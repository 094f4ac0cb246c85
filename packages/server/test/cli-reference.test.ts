/** Compares the reference of the command line with the existing commands and flags. */
import { readFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import { runInProcess } from './support/run-in-process.js'

const PAGE = readFileSync(new URL('../../../docs/reference/cli.md', import.meta.url), 'utf8')
/** Common to all commands, explained once. */
const EVERYWHERE = ['--help', '--version']

interface Found {
  readonly command: string
  readonly flags: readonly string[]
}

/** Returns a command and its subcommands, as `--help` lists them. */
async function walk(command: readonly string[]): Promise<Found[]> {
  const { out } = await runInProcess([...command, '--help'])
  const [head = '', rest = ''] = out.split(/^Commands:$/m)
  const [below = ''] = rest.split(/^Examples:$/m)
  const options = head.split(/^Options:$/m)[1] ?? ''
  const flags = [...options.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, flag = '']) => flag)
  const names = [...below.matchAll(/^ {2}([a-z]+)/gm)]
    .map(([, name = '']) => name)
    .filter(name => name !== 'help')
  const others = await Promise.all(names.map(name => walk([...command, name])))
  return [{ command: ['headgate', ...command].join(' '), flags }, ...others.flat()]
}

let commands: Found[]
beforeAll(async () => {
  commands = await walk([])
})

it('every command is in the reference', () => {
  expect(commands.length).toBeGreaterThan(15)
  expect(commands.map(({ command }) => command).filter(command => !PAGE.includes(command))).toEqual([])
})

it('every flag is in the reference, and no other', () => {
  const flags = new Set(commands.flatMap(found => found.flags))
  const explained = new Set([...PAGE.matchAll(/(?<![\w-])--[a-z][a-z-]+/g)].map(([flag]) => flag))
  expect([...flags].filter(flag => !explained.has(flag) && !EVERYWHERE.includes(flag))).toEqual([])
  expect([...explained].filter(flag => !flags.has(flag) && !EVERYWHERE.includes(flag))).toEqual([])
})
