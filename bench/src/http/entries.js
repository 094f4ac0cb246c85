/** The servers under load: each framework bare, with its usual limiter, and with our adapter. */

/** @typedef {'express' | 'fastify' | 'hono' | 'koa' | 'node:http'} Framework */
/** @typedef {'none' | 'memory' | 'redis' | 'redis, leased'} Where Limits are kept. */
/** @typedef {'bare' | 'empty middleware' | 'usual' | 'usual, tuned' | 'flexible' | 'headgate' | 'headgate, ruled'} Who */
/** @typedef {'none' | 'ietf' | 'legacy'} Style The headers that Headgate sends; its peers send three. */
/** @typedef {{ framework: Framework, where: Where, who: Who, style?: Style }} Entry */

/** @type {readonly Framework[]} */
export const FRAMEWORKS = ['express', 'fastify', 'hono', 'koa', 'node:http']

/** @type {readonly Style[]} */
const STYLES = ['none', 'ietf', 'legacy']

/** The usual limiter of each framework. @type {Readonly<Record<string, Record<'memory' | 'redis', string>>>} */
const USUAL = {
  express: { memory: 'express-rate-limit', redis: 'express-rate-limit, rate-limit-redis' },
  fastify: { memory: '@fastify/rate-limit', redis: '@fastify/rate-limit' },
  hono: { memory: 'hono-rate-limiter', redis: 'hono-rate-limiter' },
}

/** @type {readonly Entry[]} */
export const ENTRIES = FRAMEWORKS.flatMap(framework => [
  { framework, where: 'none', who: 'bare' },
  ...peersOf(framework),
  ...inMemory(framework),
  ...(framework in USUAL ? onRedis(framework) : []),
])

/** @param {Framework} framework @returns {Entry[]} */
function peersOf(framework) {
  if (!(framework in USUAL)) return []
  /** @type {Entry[]} */
  const flexible =
    framework === 'hono'
      ? []
      : [entry(framework, 'memory', 'flexible'), entry(framework, 'redis', 'flexible')]
  return [
    ...flexible,
    // The lower bound of any limiter. Hono has a shorter path for an app of one handler and leaves it with any middleware.
    entry(framework, 'none', 'empty middleware'),
    entry(framework, 'memory', 'usual'),
    entry(framework, 'redis', 'usual'),
    // Fastify's plugin supports only ioredis.
    ...(framework === 'fastify' ? [] : [entry(framework, 'redis', 'usual, tuned')]),
  ]
}

/** @param {Framework} framework @returns {Entry[]} */
function inMemory(framework) {
  return [
    ...STYLES.map(style => entry(framework, 'memory', 'headgate', style)),
    entry(framework, 'memory', 'headgate, ruled', 'legacy'),
  ]
}

/** @param {Framework} framework @returns {Entry[]} */
function onRedis(framework) {
  return [
    ...STYLES.map(style => entry(framework, 'redis, leased', 'headgate', style)),
    entry(framework, 'redis', 'headgate', 'legacy'),
    entry(framework, 'redis', 'headgate, ruled', 'legacy'),
  ]
}

/** @param {Framework} framework @param {Where} where @param {Who} who @param {Style} [style] @returns {Entry} */
function entry(framework, where, who, style) {
  return { framework, where, who, ...(style && { style }) }
}

/** @param {Entry} entry */
export function idOf({ framework, where, who, style }) {
  if (where === 'none') return `${framework}, ${who}`
  if (style !== undefined) return `${framework}, ${who}, ${where}, ${style}`
  if (who === 'flexible') return `${framework}, rate-limiter-flexible, ${where}`
  const name = USUAL[framework]?.[where === 'memory' ? 'memory' : 'redis']
  return `${framework}, ${name}, ${where}${who === 'usual, tuned' ? ' (node-redis, tuned)' : ''}`
}

/** Returns the server to compare with: the framework without a limiter. @param {Entry} entry @returns {Entry} */
export function baseOf({ framework }) {
  return entry(framework, 'none', framework === 'hono' ? 'empty middleware' : 'bare')
}
