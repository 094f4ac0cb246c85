// The reference page of the policy file, from the same description that reads it and that the JSON Schema is made of.

const INTRODUCTION = `# Policy file

Written by \`npm run schema\` from the description that also reads the file; a test holds it to that.

YAML 1.2 (\`headgate.yaml\`, with the package \`yaml\`) or JSON (a name that ends in \`.json\`), UTF-8, at most 1 MB. The
server and the library read it alike:

\`\`\`ts
import { loadConfig } from 'headgate/config'

const config = await loadConfig('headgate.yaml')
\`\`\`

Mistakes are reported together, each with line, column, path, what was expected, what came, and the name that was
probably meant. \`headgate rules validate <file>\` does only that. Settings that contradict each other, and
rules that could never match, are mistakes too. A limit that another one leaves nothing to deny (\`minute: 100\` beside
\`hour: 50\`) is none: it is told of in a warning.

Editors complete and check the file with the schema in the package, also printed by \`headgate schema\`:

\`\`\`yaml
# yaml-language-server: $schema=./node_modules/headgate/headgate.schema.json
\`\`\`
`

const EXAMPLE = `
\`\`\`yaml
tiers: default

policies:
  api:
    - { algorithm: sliding-window-log, limit: 100, window: 1m }
    - { algorithm: sliding-window-counter, limit: 2000, window: 1h }
  login: { algorithm: token-bucket, capacity: 5, refillPerSecond: 0.1 }
  search:
    limits: { algorithm: sliding-window-log, limit: 30, window: 1m }
    candidate: { algorithm: sliding-window-log, limit: 20, window: 1m }

default: { tier: anonymous }

rules:
  - { name: login, match: { method: POST, path: /login, subject: ip }, policy: login, onStoreFailure: closed }
  - { name: search, match: { path: /search/* }, policy: search, mode: shadow }
  - { match: { path: /users/:id/export, tier: [free, pro] }, cost: 20 }

subjects:
  "user:42": { tier: pro }

costs:
  POST /api/simulation/start: 10

skip: { prefixes: [/_next], extensions: [css, js, png] }
trustedProxies: [10.0.0.0/8]
upstream: http://127.0.0.1:3000
routes:
  - { match: { host: api.example.com, path: /v2 }, upstream: [https://10.0.1.1:8443, https://10.0.1.2:8443] }
\`\`\`
`

const WHAT_IS_NOT_TAKEN = `
## What is not taken

In YAML: keys twice in one map, merge keys (\`<<\`), tags of your own, more than one document, more than 64 levels and
more than 100 aliases. In both: keys named \`__proto__\`, keys that are not text. No field takes a regular expression.
`

/** The page as text. The arguments are the shapes of the file's parts. */
export function policyFilePage({
  policyFile,
  tier,
  policy,
  algorithms,
  match,
  rule,
  globalBudget,
  skip,
  sourceFields,
  bareSources,
  upstreamServers,
  upstreamConcurrency,
  route,
  routeMatch,
  defaultTiers,
}) {
  return [
    INTRODUCTION,
    EXAMPLE,
    '\n## The file\n',
    table(policyFile.fields),
    '\nNames of tiers, policies, rules and limits are up to 32 letters, digits, `-` or `_`.\n',
    '\n## Tiers\n\n`tiers` is `default`, or a map from names to:\n',
    table(tier.fields),
    '\n[What a burst is](../guide/tiers-and-bursts.md). The default set:\n',
    tierTable(defaultTiers),
    '\n## Policies\n\nA policy is a limit, a list of limits, or a map of:\n',
    table(policy.fields),
    '\n## Limits\n\n[How the algorithms differ](../guide/algorithms.md). Each limit says its `algorithm`, and:\n',
    ...[...algorithms].map(([name, fields]) => `\n### ${name}\n${table(fields)}`),
    '\n## Rules\n\nEach of `rules` is a map of:\n',
    table(rule.fields),
    '\n`match` holds at least one of these. A rule with a method or a path is on the level of the route, another on the',
    " caller's.\n",
    table(match.fields),
    `\n## Identify\n\nEach of \`identify\` is ${bareSources.map(name => `\`${name}\``).join(', ')}, or a map of one of these names to its settings.`,
    ' [What each is good for](../guide/who-is-asking.md).\n',
    'The server goes by it, and so does an adapter that is given a gate and is not told otherwise who is asking.\n',
    ...Object.entries(sourceFields).map(([name, { fields }]) => `\n### ${name}\n${table(fields)}`),
    '\n## Global\n',
    table(globalBudget.fields),
    '\n## Upstreams and routes\n\n`upstream` is a URL, a list of URLs, or a map of:\n',
    table(upstreamServers.fields),
    '\nIts `concurrency` is a map of these ([what it does](../guide/gateway.md#as-much-as-an-upstream-can-take)):\n',
    table(upstreamConcurrency.fields),
    '\nEach of `routes` is a map of:\n',
    table(route.fields),
    '\nIts `match` is a map of these, one at least:\n',
    table(routeMatch.fields),
    '\n## Skip\n\nA file is told by its extension, never by a dot somewhere in its path.\n',
    table(skip.fields),
    WHAT_IS_NOT_TAKEN,
  ].join('')
}

function table(fields) {
  const rows = Object.entries(fields).map(([name, { shape, text, leftOut, required }]) => {
    const otherwise = required ? 'required' : (leftOut ?? '')
    return `| \`${name}\` | ${code(shape.words)} | ${otherwise} | ${text} |`
  })
  return ['', '| key | value | left out | |', '|---|---|---|---|', ...rows, ''].join('\n')
}

/** Words of a choice are written as they are typed. */
function code(words) {
  const choice = /^one of ([a-z-]+(?:, [a-z-]+)*)$/.exec(words)
  return choice === null
    ? words
    : choice[1]
        .split(', ')
        .map(word => `\`${word}\``)
        .join(', ')
}

function tierTable(tiers) {
  const rows = Object.entries(tiers).map(([name, { minute, hour, day, burst = '' }]) => {
    const numbers = [minute, hour, day, burst].map(number => number.toLocaleString('en'))
    return `| \`${name}\` | ${numbers.join(' | ')} |`
  })
  return ['', '| tier | minute | hour | day | burst |', '|---|---|---|---|---|', ...rows, ''].join('\n')
}
