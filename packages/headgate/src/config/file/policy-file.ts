import { listOf } from '../shape/lists.js'
import { mapOf, record } from '../shape/maps.js'
import { choice, text } from '../shape/scalars.js'
import { enforcement, storeFailure } from './enforcement.js'
import { identify } from './identify.js'
import { ipv6Networks } from './ipv6-networks.js'
import { masks } from './masks.js'
import { costKeys, pathPrefix } from './path-pattern.js'
import { policies } from './policy.js'
import { charge, cost, globalBudget, headerStyle, rule, subjectKeys, subjectType } from './rule.js'
import { tiers } from './tier.js'
import { trustedProxies } from './trusted-proxies.js'
import { route, upstream } from './upstream.js'

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
  service: {
    shape: text('up to 64 letters, digits, _ . or -', /^[A-Za-z0-9_.-]{1,64}$/),
    text: 'The program these processes are. While Redis is away a process takes its share of each limit among those of its own name.',
    leftOut: 'the tenant',
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
  identify: {
    shape: identify,
    text: 'Who is asking: sources in the order in which they are tried. All that are found are subjects of the request, the first is charged unless a rule says otherwise. Requests of whom nothing is found share one budget.',
    leftOut: '[apikey, ip]',
  },
  subjects: {
    shape: mapOf('a map of subjects', { keys: subjectKeys, values: charge }),
    text: 'Callers named one by one, by `type:id`: their tier, or a policy of their own. No message ever shows an id.',
    leftOut: 'none',
  },
  secretTypes: {
    shape: listOf('a list of subject types', subjectType),
    text: 'Subject types whose ids are kept only as a keyed hash, beside `apikey`, `session`, `token` and all that have such a word in them.',
    leftOut: 'none',
  },
  masks: {
    shape: masks,
    text: 'How the dashboard, the admin API and the log of violations show subjects: `part` (`ip:203.0.…`), `whole`, or `hidden` (`ip:…`); for all, or by subject type with `*` for the others. A handle beside each is enough to inspect, reset or override it.',
    leftOut: 'part',
  },
  ipv6Networks: {
    shape: ipv6Networks,
    text: 'How many times a limit all callers of a wider network have together, by its size from /48 to /63. A caller is charged to its /64 and to these, all or none. `off` for the /64 alone.',
    leftOut: '{ /56: 4, /48: 16 }',
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
    shape: trustedProxies,
    text: 'Proxies whose word about the client’s address is taken: addresses and networks. `everybody` lets callers choose their address unless a proxy in front overwrites what they write; `{ hops: 2 }` counts proxies, and is safe only where every request has passed as many.',
    leftOut: 'none: the peer of the connection is the client',
  },
  forwardedHeader: {
    shape: choice(['x-forwarded-for', 'forwarded']),
    text: 'The header in which these proxies say it. The other one is not read.',
    leftOut: 'x-forwarded-for',
  },
  onStoreFailure: {
    shape: storeFailure,
    text: 'What decides when the store cannot be asked: this process at its share, nobody (all pass), or 503 for all.',
    leftOut: 'local',
  },
  headers: { shape: headerStyle, text: 'Which headers responses carry.', leftOut: 'legacy' },
  upstream: {
    shape: upstream,
    text: 'Where the gateway sends what it lets through and no route is for: a URL, several that do the same, or the long form.',
    leftOut: '`--upstream` or `--demo`',
  },
  routes: {
    shape: listOf('a list of routes', route),
    text: 'Which requests the gateway sends elsewhere, by host and path. The most specific is taken: a host by its name, then by `*.`, then any; among them the longest path.',
    leftOut: 'none',
  },
  $schema: {
    shape: text('the address of a JSON Schema', /^\S+$/),
    text: 'Where an editor finds the schema of this file. Headgate does not look.',
  },
})

/** A policy file as it was read, each part sound by itself. */
export type ReadFile = NonNullable<ReturnType<typeof policyFile.read>>
