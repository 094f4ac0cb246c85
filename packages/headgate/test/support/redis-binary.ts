import { execFileSync } from 'node:child_process'
import { systemProgram } from './system-program.ts'

interface RedisBinary {
  readonly path: string
  readonly majorVersion: number
}

let found: Promise<RedisBinary> | undefined

/** Finds the redis-server to test against, and installs it if missing, once per process. */
export function redisBinary(): Promise<RedisBinary> {
  found ??= locate()
  return found
}

async function locate(): Promise<RedisBinary> {
  const path = await systemProgram('redis-server')
  const version = /v=(\d+)/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))
  return { path, majorVersion: Number(version?.[1] ?? 0) }
}
