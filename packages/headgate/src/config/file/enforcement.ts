import { FAILURE_MODES } from '../../policy/config.js'
import { choice, percentage } from '../shape/scalars.js'

const mode = choice(['enforce', 'shadow', 'compare'])
export const storeFailure = choice(FAILURE_MODES)
const ONE_LEVEL_UP = 'inherited'

/** The fields that say how strictly a limit is enforced, the same wherever they may appear. */
export const enforcement = {
  mode: {
    shape: mode,
    text: '`enforce` denies. `shadow` evaluates, counts and lets pass. `compare` decides in the process and asks the store as well, to count differences.',
    leftOut: ONE_LEVEL_UP,
  },
  enforce: {
    shape: percentage,
    text: 'The share of subjects that is limited; the others are in shadow. A subject is always on the same side. Only with mode `enforce`.',
    leftOut: ONE_LEVEL_UP,
  },
}

export const failure = {
  onStoreFailure: {
    shape: storeFailure,
    text: 'What happens when the store does not answer.',
    leftOut: ONE_LEVEL_UP,
  },
}
