import Bottleneck from 'bottleneck'

/**
 * Schedules jobs rather than limiting. It drops a job that would have to wait, which counts as a denial.
 *
 * @param {import('./contestant.js').Setup} setup
 * @returns {Promise<import('./contestant.js').Contestant>}
 */
export async function createBottleneck({ url, rules: [rule], prefix }) {
  const { Redis } = await import('ioredis')
  const { hostname, port } = new URL(url)
  const group = new Bottleneck.Group({
    id: prefix,
    datastore: 'ioredis',
    Redis,
    clientOptions: { host: hostname, port: Number(port) },
    reservoir: rule.limit,
    reservoirRefreshAmount: rule.limit,
    reservoirRefreshInterval: rule.windowSeconds * 1000,
    highWater: 0,
    strategy: Bottleneck.strategy.OVERFLOW,
  })
  const job = async () => true
  return {
    ask: key => group.key(key).schedule(job),
    admits: Boolean,
    denies: error => error instanceof Bottleneck.BottleneckError,
  }
}
