import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))

it('a round with a frozen Redis loses no request and leaves no socket open', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, '--minutes', '0.1']).catch(
    // Exit code 1: a busy machine made the event loop late, which is not the point here.
    error => error,
  )
  const found =
    /^1\/1 {2}Redis frozen for 3 s: (\d+) allowed, (\d+) denied, (\d+) lost;.* (\d+) descriptors/m.exec(
      stdout,
    )
  expect(found, stdout).not.toBe(null)
  const [allowed = 0, denied = 0, lost, descriptors] = (found ?? []).slice(1).map(Number)
  expect(allowed + denied).toBe(500)
  expect(lost).toBe(0)
  // A hundred clients were connected; listeners, pipes and Redis remain.
  expect(descriptors).toBeLessThan(60)
  expect(stdout).toMatch(/no request is lost +\| +met/)
}, 60_000)
