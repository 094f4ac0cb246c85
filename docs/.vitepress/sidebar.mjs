// The menu: every page, in the order in which it is read.

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const DOCS = fileURLToPath(new URL('..', import.meta.url))

/** A page by its path without the ending; its first heading is its name in the menu. */
function page(path) {
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(`${DOCS}${path}.md`, 'utf8')) ?? []
  return { text: title.replace(/[`*]/g, ''), link: `/${path.replace(/README$/, '')}` }
}

const inFolder = folder =>
  readdirSync(`${DOCS}${folder}`)
    .filter(name => name.endsWith('.md'))
    .sort()
    .map(name => page(`${folder}/${name.slice(0, -3)}`))

/** Pages that a run of the tests or benches wrote. */
const MEASURED = ['benchmarks', 'bundle-size', 'faults', 'hostile']
const isMeasured = ({ link }) => MEASURED.includes(link.replace('/reference/', ''))

const guide = (...names) => names.map(name => page(`guide/${name}`))

export const SIDEBAR = [
  {
    text: 'Begin',
    items: guide('which-way-in', 'quickstart', 'quickstart-gateway', 'recipes', 'questions'),
  },
  {
    text: 'Limits',
    items: guide(
      'algorithms',
      'tiers-and-bursts',
      'quotas-and-billing',
      'bans',
      'logins',
      'waiting',
      'guarantees',
      'roll-out-safely',
    ),
  },
  {
    text: 'In your app',
    items: guide(
      ...['who-is-asking', 'client-address', 'secrets', 'batches', 'llm-proxy', 'call-an-api'],
      ...['testing', 'commonjs-and-jest', 'assistants'],
    ),
  },
  {
    text: 'Frameworks',
    items: [
      ...guide('frameworks'),
      ...[
        'express',
        'fastify',
        'hono',
        'koa',
        'next',
        'nest',
        'trpc',
        'node-http',
        'fetch',
        'mcp',
        'better-auth',
      ].map(name => page(`guide/frameworks/${name}`)),
    ],
  },
  { text: 'Coming from', collapsed: true, items: inFolder('guide/coming-from') },
  { text: 'In front of anything', items: guide('gateway', 'forward-auth', 'envoy') },
  {
    text: 'Redis and operation',
    items: guide('redis', 'speed', 'how-far-does-it-go', 'failure', 'operate', 'upgrade'),
  },
  {
    text: 'API',
    collapsed: true,
    items: inFolder('reference/api'),
  },
  { text: 'Reference', collapsed: true, items: inFolder('reference').filter(item => !isMeasured(item)) },
  { text: 'Measured', collapsed: true, items: inFolder('reference').filter(isMeasured) },
  { text: 'Decisions', collapsed: true, items: inFolder('adr') },
]
