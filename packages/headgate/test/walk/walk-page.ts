/** The walks of ARCHITECTURE.md, and the functions that ran when they were gone. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect } from 'vitest'

export interface Hop {
  readonly file: string
  readonly name: string
}

const page = readFileSync(new URL('../../../../ARCHITECTURE.md', import.meta.url), 'utf8')

/** The hops of a section in order. */
export function hopsOf(heading: string): readonly Hop[] {
  const section = page.split(`### ${heading}\n`)[1]?.split('\n#')[0] ?? ''
  return [...section.matchAll(/^\d+\. `([\w/-]+\.ts)` `([\w.]+)`/gm)].map(([, file = '', name = '']) => ({
    file,
    name,
  }))
}

/** Fails for a hop of the section that did not run when the recorder made its call. Returns how many files ran. */
export async function expectWalked(
  heading: string,
  recorder: string,
  args: readonly string[],
): Promise<number> {
  const hops = hopsOf(heading)
  expect(hops.length).toBeGreaterThan(1)
  const { stdout } = await promisify(execFile)(process.execPath, [recorder, ...args])
  const ran = JSON.parse(stdout) as { file: string; functions: string[] }[]
  const byFile = new Map(ran.map(({ file, functions }) => [file, functions]))
  const missed = hops.filter(({ file, name }) => !byFile.get(file)?.includes(name))
  expect(missed).toEqual([])
  return byFile.size
}
