import { parseNetwork } from '../../subject/network.js'
import { listOf } from '../shape/lists.js'
import { mapOf, record } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { choice, text } from '../shape/scalars.js'
import type { Shape } from '../shape/shape.js'
import { enforcement, storeFailure } from './enforcement.js'
import { costKeys, pathPrefix } from './path-pattern.js'
import { policies } from './policy.js'
import { charge, cost, globalBudget, headerStyle, rule, subjectKeys } from './rule.js'
import { tiers } from './tier.js'
import { upstream } from './upstream.js'

const trustedProxy: Shape<string> = {
  words: 'an address or a network',
  schema: { type: 'string', pattern: '^[0-9a-fA-F:.]+(/\\d{1,3})?$' },
  read(value, place) {
    const objection = objectionTo(() => parseNetwork(value))
    return objection === null ? String(value) : place.refuse(objection)
  },
}

export const skip = record({
  prefixes: {
    shape: listOf('a list of the beginnings of paths', pathPrefix),
    text: 'Whole segments: `/_next` is `/_next` and what is below it, not `/_nextgen`.',
    leftOut: 'none',
  },
  extensions: {
    shape: listOf(
      'a list of extensions',
      text('an extension in lower case and without the dot, such as css', /^[a-z0-9]{1,16}$/),
    ),
    text: 'Of GET and HEAD requests for files: `css`, without the dot.',
    leftOut: 'none',
  },
})

/** Everything a policy file may say. */
export const policyFile = record({
  prefix: {
    shape: text('up to 32 letters, digits, _ . or -', /^[A-Za-z0-9_.-]{1,32}$/),
    text: 'First part of every key in Redis.',
    leftOut: 'ratelimit',
  },
  tenant: {
    shape: text('a text of 1 to 64 letters, digits, ., _ or -', /^[\w.-]{1,64}$/),
    text: 'Keeps the limits of several products on one Redis apart.',
    leftOut: 'none',
  },
  tiers: {
    shape: tiers,
    text: 'Classes of caller by name, or `default` for the set below.',
    leftOut: 'default',
  },
  policies: {
    shape: policies,
    text: 'Limits by name. All limits of a policy are charged together, or none.',
    leftOut: 'none',
  },
  levels: {
    shape: choice(['most-specific', 'all', 'first-available']),
    text: 'How the levels route, caller and global combine: the most specific that has a rule decides; every one must admit; or the first that has room is charged.',
    leftOut: 'most-specific',
  },
  mode: { ...enforcement.mode, leftOut: 'enforce' },
  enforce: { ...enforcement.enforce, leftOut: '100%' },
  default: {
    shape: charge,
    text: 'What a caller is charged to about whom nothing else is said: a tier or a policy.',
    leftOut: '{ tier: anonymous }',
  },
  global: {
    shape: globalBudget,
    text: 'One budget that all callers share, the least specific level. Not with `levels: most-specific`, which would never ask it.',
    leftOut: 'none',
  },
  rules: {
    shape: listOf('a list of rules', rule),
    text: 'What applies to which requests. The first rule that matches on its level is taken.',
    leftOut: 'none',
  },
  subjects: {
    shape: mapOf('a map of subjects', { keys: subjectKeys, values: charge }),
    text: 'Callers named one by one, by `type:id`: their tier, or a policy of their own. No message ever shows an id.',
    leftOut: 'none',
  },
  costs: {
    shape: mapOf('a map of costs', { keys: costKeys, values: cost }),
    text: 'Units a request takes, by `METHOD /path` or `/path`, where its rule does not say. The first that matches is taken.',
    leftOut: 'none',
  },
  skip: {
    shape: skip,
    text: 'Requests that are not limited, unless a rule names them by their path.',
    leftOut: 'none',
  },
  trustedProxies: {
    shape: listOf('a list of addresses and networks', trustedProxy),
    text: 'Proxies whose word about the client’s address (`X-Forwarded-For`) is taken: addresses and networks.',
    leftOut: 'none: the peer of the connection is the client',
  },
  onStoreFailure: {
    shape: storeFailure,
    text: 'What decides when the store cannot be asked: this process at its share, nobody (all pass), or 503 for all.',
    leftOut: 'local',
  },
  headers: { shape: headerStyle, text: 'Which headers responses carry.', leftOut: 'both' },
  upstream: {
    shape: upstream,
    text: 'Where the gateway sends what it lets through, `http://host:port`.',
    leftOut: '`--upstream` or `--demo`',
  },
  $schema: {
    shape: text('the address of a JSON Schema', /^\S+$/),
    text: 'Where an editor finds the schema of this file. Headgate does not look.',
  },
})

/** A policy file as it was read, each part sound by itself. */
export type ReadFile = NonNullable<ReturnType<typeof policyFile.read>>
