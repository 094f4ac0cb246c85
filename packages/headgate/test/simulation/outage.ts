/**
 * A Redis that comes and goes and then is gone: frozen for 60 to 100 ms every one to two seconds, so that breakers
 * open, connections are replaced and heartbeats are lost with them, while processes end and others start.
 */
import { anyOf, type Site } from './weather.ts'

const COMES_AND_GOES_US = 12_000_000
/** From then on it is gone until here: a few windows of every limit. */
export const OUTAGE_US = 16_000_000

export function comeAndGo({ time, redis, conditions, fleet, history, dice }: Site): void {
  /** Processes that are cut off at a time are silent for seconds, and continue. */
  const cutOffChance = dice.between(0, 0.4)
  const endChance = dice.between(0, 0.2)
  const forgetChance = dice.between(0, 0.2)

  function freeze(): void {
    const us = Math.ceil(dice.between(60_000, 100_000))
    conditions.frozenUntilUs = time.nowUs() + us
    history.write('redis', () => `is frozen for ${us / 1000} ms`)
    if (dice.chance(cutOffChance)) cutOneOff()
    if (dice.chance(endChance)) endOne()
    if (dice.chance(forgetChance)) {
      redis.failOver(Number.POSITIVE_INFINITY)
      history.write('redis', () => 'comes back empty')
    }
    next()
  }

  function cutOneOff(): void {
    const name = anyOf(fleet, dice)?.host.name
    if (name === undefined) return
    conditions.cutOff.add(name)
    history.write(name, () => 'is cut off')
    time.after(dice.between(2_000_000, 6_000_000), 'message', null, () => conditions.cutOff.delete(name))
  }

  function endOne(): void {
    const process = anyOf(fleet, dice)
    if (dice.chance(0.5)) process?.crash()
    else process?.leave()
    time.after(dice.wait(300_000), 'message', null, () => fleet.startAnother())
  }

  function next(): void {
    const gapUs = dice.between(1_000_000, 2_000_000)
    if (time.nowUs() + gapUs < COMES_AND_GOES_US) time.after(gapUs, 'message', null, freeze)
    else {
      time.after(COMES_AND_GOES_US - time.nowUs(), 'message', null, () => {
        conditions.frozenUntilUs = Number.MAX_SAFE_INTEGER
        history.write('redis', () => 'is gone')
      })
    }
  }
  next()
}
