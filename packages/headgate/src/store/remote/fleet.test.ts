import { expect, it } from 'vitest'
import type { Timers } from '../../time/clock.js'
import { type Beat, createFleet } from './fleet.js'

/** Creates a fleet whose heartbeats are answered as given; null is no answer. */
function fleetAnswering(answers: (Beat | null)[]) {
  const due: (() => void)[] = []
  const timers: Timers = {
    after: () => () => {},
    inBackground(_ms, work) {
      due.push(work)
      return () => due.splice(0)
    },
  }
  const beat = async (): Promise<Beat> => {
    const answer = answers.shift()
    if (!answer) throw new Error('no answer')
    return answer
  }
  const fleet = createFleet(beat, 1_000, timers, () => {})
  const beatOnce = async (): Promise<void> => {
    due.shift()?.()
    await new Promise(resolve => setImmediate(resolve))
  }
  return { fleet, beatOnce }
}

const heard = (live: number, recent = live): Beat => ({ live, recent, lostWrites: 0 })

it('a share divides by the most processes it was told of, until it has been told of fewer for a minute', async () => {
  const { fleet, beatOnce } = fleetAnswering([heard(4), ...Array<Beat>(60).fill(heard(2))])
  // The first beat is made at once.
  for (let answer = 2; answer <= 60; answer++) {
    await beatOnce()
    expect(fleet.mayBeLive()).toBe(4)
  }
  expect(fleet.live()).toBe(2)
  await beatOnce()
  expect(fleet.mayBeLive()).toBe(2)
})

it('the size of a fleet is not forgotten while nothing is told of it', async () => {
  const { fleet, beatOnce } = fleetAnswering([heard(1, 3), ...Array<null>(200).fill(null), heard(1)])
  for (let beat = 0; beat < 202; beat++) await beatOnce()
  expect([fleet.live(), fleet.mayBeLive()]).toEqual([1, 3])
})
