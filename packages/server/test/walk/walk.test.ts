/** ARCHITECTURE.md walks through the gateway. Here requests are sent, and the page is held to what ran. */
import { fileURLToPath } from 'node:url'
import { describe, it } from 'vitest'
import { expectWalked } from '../../../headgate/test/walk/walk-page.ts'

const RECORDER = fileURLToPath(new URL('record-walk.mjs', import.meta.url))

describe('the walk through the gateway', () => {
  it.each([
    ['passed', 'A request through the gateway'],
    ['refused', 'A request that the gateway refuses'],
  ] as const)(
    'the walk through the gateway passes every function that the page names for a request that is %s',
    async (kind, heading) => {
      await expectWalked(heading, RECORDER, [kind])
    },
  )
})
