/** Builds examples/next once and starts it, as `next build` and `next start` do. */
import { execFile, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ServerUnderTest } from '../../src/testing/adapters/adapter-law.ts'

const APP = fileURLToPath(new URL('../../../../examples/next', import.meta.url))
const NEXT = fileURLToPath(import.meta.resolve('next/dist/bin/next'))
// vitest's own NODE_ENV would make it a development build.
const ENV = { ...process.env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1', CI: '1' } as const

export async function startNextApp(): Promise<ServerUnderTest> {
  await promisify(execFile)(process.execPath, [NEXT, 'build', APP], { env: ENV })
  const server = spawn(process.execPath, [NEXT, 'start', APP, '-p', '0', '-H', '127.0.0.1'], {
    env: ENV,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>(resolve => server.once('exit', () => resolve()))
  const close = () => {
    server.kill()
    return ended
  }
  let url = ''
  for await (const line of createInterface({ input: server.stdout })) {
    url ||= /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? ''
    if (line.includes('Ready')) break
  }
  // Later output must not fill the pipe.
  server.stdout.resume()
  if (url === '') throw new Error('next start ended before it listened')
  return { url, close }
}
