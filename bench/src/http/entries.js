/** The servers that are loaded: each framework bare, with the limiter its users take, and with ours. */

/** @typedef {'express' | 'fastify' | 'hono'} Framework */
/** @typedef {'none' | 'memory' | 'redis'} Where Limits are kept. */
/** @typedef {{ framework: Framework, where: Where, who: 'bare' | 'usual' | 'usual, tuned' | 'headgate' }} Entry */

/** @type {readonly Framework[]} */
export const FRAMEWORKS = ['express', 'fastify', 'hono']

/** What users of a framework take. @type {Readonly<Record<Framework, Record<'memory' | 'redis', string>>>} */
const USUAL = {
  express: { memory: 'express-rate-limit', redis: 'express-rate-limit, rate-limit-redis' },
  fastify: { memory: '@fastify/rate-limit', redis: '@fastify/rate-limit' },
  hono: { memory: 'hono-rate-limiter', redis: 'hono-rate-limiter' },
}

/** @type {readonly Entry[]} */
export const ENTRIES = FRAMEWORKS.flatMap(framework => [
  { framework, where: 'none', who: 'bare' },
  { framework, where: 'memory', who: 'usual' },
  { framework, where: 'memory', who: 'headgate' },
  { framework, where: 'redis', who: 'usual' },
  // The plugin of Fastify knows no client but ioredis.
  ...(framework === 'fastify' ? [] : [tuned(framework)]),
  { framework, where: 'redis', who: 'headgate' },
])

/** @param {Framework} framework @returns {Entry} */
function tuned(framework) {
  return { framework, where: 'redis', who: 'usual, tuned' }
}

/** @param {Entry} entry */
export function idOf({ framework, where, who }) {
  if (where === 'none') return `${framework}, bare`
  const name = who === 'headgate' ? 'headgate' : USUAL[framework][where]
  return `${framework}, ${name}, ${where}${who === 'usual, tuned' ? ' (node-redis, tuned)' : ''}`
}
