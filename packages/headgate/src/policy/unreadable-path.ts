import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import type { ActiveConfig } from './active-config.js'
import { ConfiguredPolicy } from './configured-policy.js'
import { Level } from './level.js'

/**
 * Returns the level of a path that can be read in more ways than `pathReadings` considers: a ban. Working out what
 * each reading leads to would cost the process more than the request did, and no honest client sends one.
 */
export function unreadableLevel({ config }: ActiveConfig): Level {
  return new Level(
    config,
    {
      level: 'route',
      rule: 'unreadable path',
      scope: 'global',
      per: 'caller',
      subjectTypes: null,
      mode: 'enforce',
    },
    BAN,
    null,
  )
}

// No policy name contains a plus, so this never shares state with one.
const NAME = 'unreadable+path'
const limit = slidingWindowLog({ limit: 0, window: '1s' })
const BAN = new ConfiguredPolicy(
  { name: NAME, tier: null, limits: [{ name: `${NAME}.${limit.id}`, limit }] },
  {},
  1,
)
