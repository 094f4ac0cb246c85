import { expect, it } from 'vitest'
import { createChanges } from '../src/admin/changes.js'

it('a change is one line of the log, whatever breaks an operator wrote into its reason', async () => {
  const lines: string[] = []
  const changes = createChanges(
    line => lines.push(line),
    null,
    () => 0,
  )
  await changes.add({ by: 'ada', what: 'set an override of user:1 for 1h: first\r\nbob reset everything' })
  expect(lines).toEqual(['ada set an override of user:1 for 1h: first bob reset everything'])
  expect((await changes.list()).changes).toHaveLength(1)
})
