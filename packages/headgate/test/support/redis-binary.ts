import { execFileSync } from 'node:child_process'

interface RedisBinary {
  readonly path: string
  readonly majorVersion: number
}

interface Finder {
  ensureRedisServer(options?: { log?: (line: string) => void }): Promise<string>
}

let found: Promise<RedisBinary> | undefined

/** The redis-server to test against, looked for (and installed if missing) once in a process. */
export function redisBinary(): Promise<RedisBinary> {
  found ??= locate()
  return found
}

async function locate(): Promise<RedisBinary> {
  const finder = new URL('../../../../scripts/redis-server.mjs', import.meta.url).href
  const { ensureRedisServer } = (await import(finder)) as Finder
  const path = await ensureRedisServer()
  const version = /v=(\d+)/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))
  return { path, majorVersion: Number(version?.[1] ?? 0) }
}
