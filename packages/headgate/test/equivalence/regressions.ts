import type { Step } from './history.ts'

/** Histories on which the scripts and the engine once differed. Add new ones with what they showed. */
export const regressions: readonly { readonly name: string; readonly history: readonly Step[] }[] = [
  {
    name: 'a debt that takes longer to pay than time can be counted is written down at once',
    history: [
      decide(9, 1),
      { kind: 'refund', which: 0, units: -4_000_000_000, byTime: false },
      decide(9, 1),
      { kind: 'wait', us: 5_000_000 },
      decide(9, 1),
    ],
  },
  {
    name: 'a refund of the newest entry does not bring back what had left the window when the clock then steps back',
    history: [
      decide(0, 1),
      { kind: 'wait', us: 1_000_000 },
      decide(0, 1),
      { kind: 'refund', which: 0, units: 1, byTime: false },
      { kind: 'wait', us: -1 },
      { kind: 'refund', which: 0, units: 1, byTime: false },
      decide(0, 1),
    ],
  },
  {
    name: 'a refund after two entries of one microsecond have left counts from the later of them',
    history: [
      decide(0, 1, 2),
      decide(0, 1, 2),
      { kind: 'wait', us: 1_000_000 },
      decide(0, 2, 2),
      { kind: 'refund', which: 2, units: 1, byTime: true },
      decide(0, 1, 2),
    ],
  },
  {
    name: 'a refund of a part brings the key to the time of the refund',
    history: [
      decide(7, 1),
      { kind: 'wait', us: 1_428_572 },
      { kind: 'refund', which: 0, units: 1, byTime: false },
      { kind: 'wait', us: -1 },
      decide(7, 1),
    ],
  },
  {
    name: 'a permit that was taken beside a look with a shorter holdFor can be given back',
    history: [
      {
        kind: 'decide',
        alternatives: [[{ family: 13, variant: 1, scope: 1, cost: 1 }]],
        shadow: [{ family: 13, variant: 0, scope: 1, cost: 0 }],
      },
      { kind: 'refund', which: 0, units: 1, byTime: false, heldForUs: -1 },
    ],
  },
]

/** Creates a request of one limit: its family and variant in history.ts, and the cost. */
function decide(family: number, cost: number, variant = 0): Step {
  return { kind: 'decide', alternatives: [[{ family, variant, scope: 0, cost }]], shadow: [] }
}
