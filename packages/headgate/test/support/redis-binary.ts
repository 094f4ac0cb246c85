import { execFileSync } from 'node:child_process'
import { systemProgram } from './system-program.ts'

interface RedisBinary {
  readonly path: string
  readonly majorVersion: number
}

let found: Promise<RedisBinary> | undefined

/** The redis-server to test against, looked for (and installed if missing) once in a process. */
export function redisBinary(): Promise<RedisBinary> {
  found ??= locate()
  return found
}

async function locate(): Promise<RedisBinary> {
  const path = await systemProgram('redis-server')
  const version = /v=(\d+)/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))
  return { path, majorVersion: Number(version?.[1] ?? 0) }
}
