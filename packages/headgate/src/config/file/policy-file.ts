import { listOf } from '../shape/lists.js'
import { mapOf, partsOf, record } from '../shape/maps.js'
import { choice, text } from '../shape/scalars.js'
import type { ReadAs } from '../shape/shape.js'
import { enforcement, storeFailure } from './enforcement.js'
import { cors, route, upstream } from './gateway.js'
import { identify } from './identify.js'
import { costKeys, pathPrefix } from './path-pattern.js'
import { policies } from './policy.js'
import { charge, cost, globalBudget, headerStyle, rule } from './rule.js'
import { ipv6Networks, masks, subjectKeys, subjectType, trustedProxies } from './subjects.js'
import { tiers } from './tier.js'

export const skip = record({
  prefixes: {
    shape: listOf('a list of the beginnings of paths', pathPrefix),
    text: 'Whole segments: `/_next` covers `/_next` and everything below it, not `/_nextgen`.',
    leftOut: 'none',
  },
  extensions: {
    shape: listOf(
      'a list of extensions',
      text('an extension in lower case and without the dot, such as css', /^[a-z0-9]{1,16}$/),
    ),
    text: 'File extensions of GET and HEAD requests: `css`, without the dot.',
    leftOut: 'none',
  },
})

/** Everything a policy file may contain. Mistakes in one part do not keep the others from being read and compared. */
export const policyFile = record({
  prefix: {
    shape: text('up to 32 letters, digits, _ . or -', /^[A-Za-z0-9_.-]{1,32}$/),
    text: 'The first part of every key in Redis.',
    leftOut: 'ratelimit',
  },
  tenant: {
    shape: text('a text of 1 to 64 letters, digits, ., _ or -', /^[\w.-]{1,64}$/),
    text: 'Separates the limits of several products on one Redis.',
    leftOut: 'none',
  },
  service: {
    shape: text('up to 64 letters, digits, _ . or -', /^[A-Za-z0-9_.-]{1,64}$/),
    text: 'The name of this program. While Redis is away, the processes of one service share each limit.',
    leftOut: 'the tenant',
  },
  tiers: {
    shape: tiers,
    text: 'Classes of caller by name, or `default` for the set below.',
    leftOut: 'default',
  },
  policies: {
    shape: policies,
    text: 'Limits by name. All limits of a policy are charged together, or none. [`login` and `login-address`](../guide/logins.md) are there to be named, unless the file defines its own.',
    leftOut: 'none',
  },
  levels: {
    shape: choice(['most-specific', 'all', 'first-available']),
    text: 'How the levels route, caller and global combine: the most specific one with a rule decides; all must admit; or the first with room is charged.',
    leftOut: 'most-specific',
  },
  mode: { ...enforcement.mode, leftOut: 'enforce' },
  enforce: { ...enforcement.enforce, leftOut: '100%' },
  default: {
    shape: charge,
    text: 'The tier or policy of callers for whom nothing else is set.',
    leftOut: '{ tier: anonymous }',
  },
  global: {
    shape: globalBudget,
    text: 'One budget that all callers share, the least specific level. Not with `levels: most-specific`, which would never use it.',
    leftOut: 'none',
  },
  rules: {
    shape: listOf('a list of rules', partsOf(rule)),
    text: 'Which limits apply to which requests. The first matching rule of a level is used.',
    leftOut: 'none',
  },
  identify: {
    shape: identify,
    text: 'Sources that find the caller, in the order they are tried. Everything they find is a subject of the request; the first is charged unless a rule says otherwise. Requests without a subject share one budget.',
    leftOut: '[apikey, ip]',
  },
  subjects: {
    shape: mapOf('a map of subjects', { keys: subjectKeys, values: charge }),
    text: 'Single callers by `type:id`, with their tier or policy. No message ever shows an id.',
    leftOut: 'none',
  },
  secretTypes: {
    shape: listOf('a list of subject types', subjectType),
    text: 'Further subject types whose ids are stored only as a keyed hash, like `apikey`, `session`, `token` and all types that contain such a word.',
    leftOut: 'none',
  },
  masks: {
    shape: masks,
    text: 'How the dashboard, the admin API and the kept denials show subjects: `part` (`ip:203.0.…`), `whole`, or `hidden` (`ip:…`); for all, or by subject type with `*` for the others. The reference shown beside each is enough to inspect, reset or override it.',
    leftOut: 'part',
  },
  ipv6Networks: {
    shape: ipv6Networks,
    text: 'How many times the limit all callers of a wider network get together, by its size from /48 to /63. A caller is charged to its /64 and to these, all or none. `off` charges the /64 alone.',
    leftOut: '{ /56: 4, /48: 16 }',
  },
  costs: {
    shape: mapOf('a map of costs', { keys: costKeys, values: cost }),
    text: 'Units a request takes, by `METHOD /path` or `/path`, unless its rule sets a cost. The first match is used.',
    leftOut: 'none',
  },
  skip: {
    shape: skip,
    text: 'Requests that are not limited, unless a rule names their path.',
    leftOut: 'none',
  },
  trustedProxies: {
    shape: trustedProxies,
    text: 'Proxies to believe about the client’s address: addresses and networks. `everybody` lets callers choose their address unless a proxy in front overwrites the header; `{ hops: 2 }` counts proxies, and is safe only if every request has passed that many.',
    leftOut: 'none: the peer of the connection is the client',
  },
  forwardedHeader: {
    shape: choice(['x-forwarded-for', 'forwarded']),
    text: 'The header these proxies write. The other one is ignored.',
    leftOut: 'x-forwarded-for',
  },
  onStoreFailure: {
    shape: storeFailure,
    text: 'What happens when the store does not answer: this process decides at its share, all requests pass, or all get 503.',
    leftOut: 'local',
  },
  headers: { shape: headerStyle, text: 'The quota headers that responses carry.', leftOut: 'legacy' },
  cors: {
    shape: cors,
    text: 'Lets pages of other origins read the gateway’s own responses, such as 429 and 503. Responses of upstreams keep their own.',
    leftOut: 'none',
  },
  upstream: {
    shape: upstream,
    text: 'Where the gateway sends admitted requests without a route: a URL, several equivalent ones, or the long form.',
    leftOut: '`--upstream` or `--demo`',
  },
  routes: {
    shape: listOf('a list of routes', partsOf(route)),
    text: 'Requests the gateway sends elsewhere, by host and path. The most specific is used: an exact host before `*.`, that before any host, then the longest path.',
    leftOut: 'none',
  },
  $schema: {
    shape: text('the address of a JSON Schema', /^\S+$/),
    text: 'Where an editor finds the schema of this file. Headgate ignores it.',
  },
})

/** A policy file as read, each part valid by itself. Those that are not are missing. */
export type ReadFile = ReadAs<typeof policyFile>
