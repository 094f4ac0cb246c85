/** Generates the requests of a process, as the run's shape determines. */
import type { Dice } from './dice.ts'
import { PLAIN_NAMES, type PolicyName, type Shape } from './policies.ts'

/** A future request. */
export interface Asked {
  readonly policy: PolicyName
  readonly subject: `user:${number}`
  readonly cost: number
  readonly mode: 'local' | 'open' | 'closed' | undefined
  readonly how: 'check' | 'peek'
}

export interface Load {
  /** Mean time between the requests of a process. */
  readonly gapUs: number
  next(dice: Dice): Asked
  /**
   * How much longer than usual a process rests before its next request: a lease is left over then, a bucket fills.
   */
  restUs(dice: Dice): number
  /** Whether a process resets its next subject instead. */
  resets(dice: Dice): boolean
}

/**
 * The subjects of leased policies, the first far more frequent: only what is asked for again and again is leased.
 */
export const LEASED_SUBJECTS = ['user:1', 'user:2'] as const

export function createLoad(dice: Dice, { leased }: Shape): Load {
  const gapUs = dice.between(5_000, 60_000)
  const subjects = dice.whole(1, 3)
  const [first, ...others] = leased
  const nextPlain = (dice: Dice): Asked =>
    requestOf(dice, dice.pick(PLAIN_NAMES), `user:${dice.whole(1, subjects)}`)
  if (first === undefined) return { gapUs, next: nextPlain, restUs: () => 0, resets: () => false }
  return {
    gapUs: gapUs / 6,
    next(dice) {
      if (dice.chance(0.15)) return nextPlain(dice)
      return requestOf(dice, dice.pick([first, ...others]), LEASED_SUBJECTS[dice.chance(0.9) ? 0 : 1])
    },
    restUs: dice => (dice.chance(0.02) ? dice.wait(400_000) : 0),
    resets: dice => dice.chance(0.003),
  }
}

function requestOf(dice: Dice, policy: PolicyName, subject: Asked['subject']): Asked {
  return {
    policy,
    subject,
    cost: dice.chance(0.8) ? 1 : dice.whole(2, 4),
    mode: dice.chance(0.8) ? undefined : dice.pick(['local', 'open', 'closed']),
    how: dice.chance(0.92) ? 'check' : 'peek',
  }
}
