/**
 * Turns request facts, the policy file, overrides and control into checks: which limits a request is asked against,
 * whose they are, and which of them bind. One pure function; nothing else decides what applies.
 *
 * A request that servers may read in several ways is resolved in each of them and held to everything this leads to:
 * every limit, the highest cost, the strictest failure mode. So no spelling is better off than another.
 */

import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import type { ActiveConfig } from './active-config.js'
import type { AppliedLevel } from './applied-level.js'
import { applyLevel } from './apply-level.js'
import { ConfiguredPolicy } from './configured-policy.js'
import {
  askedBy,
  type Caller,
  callerLevel,
  findCaller,
  globalLevel,
  routeLevel,
  unknownOf,
} from './find-levels.js'
import { type FoundRoute, findRoutes } from './found-routes.js'
import { Level } from './level.js'
import type { CanonicalFacts } from './request-facts.js'
import { assignParts, conclude, type Resolution, type ResolvedReading } from './resolution.js'

/** Resolves a request by the rules. */
export function resolve(active: ActiveConfig, facts: CanonicalFacts, nowUs: number): Resolution {
  const caller = findCaller(active, facts, nowUs)
  if (facts.path === 'too-many') return resolveUnreadable(active, facts, caller)
  const asked = askedBy(facts, caller.tier)
  const routes = findRoutes(active, facts, asked)
  const minted = unknownOf(active, facts.minted ?? null, nowUs)
  const apply = (level: Level) => applyLevel(level, facts.subjects, minted)
  const ofCaller = apply(callerLevel(active, asked, caller, nowUs))
  const everybodys = globalLevel(active, nowUs)
  const common = everybodys === null ? [ofCaller] : [ofCaller, apply(everybodys)]
  const readings = routes.map(found => {
    const { rule } = found
    const route = rule === null ? null : apply(routeLevel(active, rule, caller, nowUs))
    return resolveRoute(active, found, route === null ? common : [route, ...common])
  })
  const isSkipped = readings.every(({ skipped }) => skipped)
  return conclude(active, readings, {
    tier: caller.tier,
    given: facts.cost,
    cost: facts.cost ?? Math.max(...readings.map(({ cost }) => cost)),
    isSkipped,
  })
}

/** Denies a request with too many readings, because what they lead to cannot be worked out. */
function resolveUnreadable(active: ActiveConfig, facts: CanonicalFacts, { tier }: Caller): Resolution {
  const level = applyLevel(unreadableLevel(active), facts.subjects)
  level.part = 'decides'
  const cost = facts.cost ?? 1
  const reading = { levels: [level], deciding: [level], cost, skipped: false }
  return conclude(active, [reading], {
    tier,
    given: Math.max(1, cost),
    cost: Math.max(1, cost),
    isSkipped: false,
  })
}

function resolveRoute(
  active: ActiveConfig,
  { rule, isSkippable, listedCost, readings }: FoundRoute,
  levels: readonly AppliedLevel[],
): ResolvedReading {
  const namedByPath = rule !== null && rule.match.path !== null
  const [route] = levels
  // A rule for a path takes precedence over skipping; in shadow it only watches, and the request is still skipped.
  const onTrial = isSkippable && namedByPath && route?.isShadow === true
  const skipped = isSkippable && !namedByPath
  const spoken = onTrial ? levels.slice(0, 1) : levels
  const decider = assignParts(active, skipped ? [] : spoken)
  for (const level of spoken) level.readings.push(...readings)
  return { ...decider, levels: spoken, skipped, cost: costOf(spoken, decider.deciding) ?? listedCost }
}

/** Returns the cost set by the most specific deciding level; if all are in shadow, by any of them. */
function costOf(levels: readonly AppliedLevel[], deciding: readonly AppliedLevel[]): number | null {
  const speaking = deciding.length === 0 ? levels : deciding
  return speaking.find(({ level }) => level.cost !== null)?.level.cost ?? null
}

/**
 * Returns the level of a path that can be read in more ways than `pathReadings` considers: a ban. Working out what
 * each reading leads to would cost the process more than the request did, and no honest client sends one.
 */
function unreadableLevel({ config }: ActiveConfig): Level {
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
