import { FAILURE_MODES } from '../../policy/config.js'
import { choice, percentage } from '../shape/scalars.js'

const mode = choice(['enforce', 'shadow', 'compare'])
export const storeFailure = choice(FAILURE_MODES)
const ONE_LEVEL_UP = 'decided one level up'

/** How far a limit is enforced: the same words wherever they may be said. */
export const enforcement = {
  mode: {
    shape: mode,
    text: '`enforce` denies. `shadow` evaluates, counts and lets pass. `compare` decides in the process and evaluates the store beside it.',
    leftOut: ONE_LEVEL_UP,
  },
  enforce: {
    shape: percentage,
    text: 'How many of 100 subjects are limited; the others are in shadow. A subject is always on the same side. Only with the mode `enforce`.',
    leftOut: ONE_LEVEL_UP,
  },
}

export const failure = {
  onStoreFailure: {
    shape: storeFailure,
    text: 'What decides when the store cannot be asked.',
    leftOut: ONE_LEVEL_UP,
  },
}
