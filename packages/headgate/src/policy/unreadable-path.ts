import type { ActiveConfig } from './active-config.js'
import { ConfiguredPolicy } from './configured-policy.js'
import { Level } from './level.js'
import { slidingWindowLog } from './limits.js'

/**
 * The limit of a path that can be read in more ways than `pathReadings` looks at: a ban. To work out what each of
 * them leads to would cost the process more than the request, and no client that means well sends one.
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

// No policy can have a plus in its name: it never meets the state of one.
const NAME = 'unreadable+path'
const limit = slidingWindowLog({ limit: 0, window: '1s' })
const BAN = new ConfiguredPolicy(
  { name: NAME, tier: null, limits: [{ name: `${NAME}.${limit.id}`, limit }] },
  {},
  1,
)
