/**
 * ARCHITECTURE.md walks through one check and one request. Here they are made, and the page is compared with what
 * ran.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

const RECORDER = fileURLToPath(new URL('record-walk.mjs', import.meta.url))
const page = readFileSync(new URL('../../../../ARCHITECTURE.md', import.meta.url), 'utf8')

/** Returns the hops of a section: file and function, in order. */
function hopsOf(heading: string): { file: string; name: string }[] {
  const section = page.split(`### ${heading}\n`)[1]?.split('\n#')[0] ?? ''
  return [...section.matchAll(/^\d+\. `([\w/-]+\.ts)` `([\w.]+)`/gm)].map(([, file = '', name = '']) => ({
    file,
    name,
  }))
}

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

async function record(kind: 'check' | 'unit' | 'request'): Promise<ReadonlyMap<string, readonly string[]>> {
  const { stdout } = await promisify(execFile)(process.execPath, [RECORDER, redis.url, kind])
  const ran = JSON.parse(stdout) as { file: string; functions: string[] }[]
  return new Map(ran.map(({ file, functions }) => [file, functions]))
}

describe('the walk through the sources', () => {
  it.each([
    ['check', 'A check on Redis'],
    ['unit', 'One unit of one limit'],
    ['request', 'A request by the rules'],
  ] as const)('the walk passes every function that the page names for a %s', async (kind, heading) => {
    const hops = hopsOf(heading)
    expect(hops.length).toBeGreaterThan(3)
    const ran = await record(kind)
    for (const { file, name } of hops) expect(ran.get(file) ?? [], `${file} ${name}`).toContain(name)
  })

  it('the walk passes a question through at most twenty files, to the wire and back', () => {
    expect(new Set(hopsOf('A check on Redis').map(({ file }) => file)).size).toBeLessThanOrEqual(20)
  })
})
