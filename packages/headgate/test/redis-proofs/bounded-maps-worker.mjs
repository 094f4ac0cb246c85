// Checks random subjects with Redis up and then gone, and reports the most entries of any Map or Set, by the file
// that filled it. Every Map is watched, not only those known to grow, so that later additions are found too.
const peaks = {}
watch('Map', 'set')
watch('Set', 'add')

const { createClient } = await import('redis')
const { createLimiter, slidingWindowCounter } = await import('../../dist/index.js')
const { redisStore } = await import('../../dist/redis.js')

const { url, subjects } = JSON.parse(process.argv[2])
// A share of one unit: whoever takes the whole limit is in debt for 500 windows, 100 seconds.
const store = redisStore(createClient({ url }), {
  processes: 500,
  deadlineMs: 1_000,
  logEveryMs: 86_400_000,
  onWarning: () => {},
})
const window = '200ms'
const policies = {
  plain: slidingWindowCounter({ limit: 500, window }),
  leased: { limits: slidingWindowCounter({ limit: 1_000, window }), lease: { max: 10, ttl: '10ms' } },
}
const limiter = createLimiter({ store, policies })
await store.ready()
await drive('up')

process.once('message', async () => {
  await limiter.check('user:nobody', { policy: 'plain' })
  const victim = async () => (await limiter.check('user:victim', { policy: 'plain', cost: 500 })).allowed
  const victimAllowed = [await victim()]
  await drive('down')
  victimAllowed.push(await victim())
  const newcomer = await limiter.check('user:newcomer', { policy: 'plain', cost: 500 })
  const modestNewcomer = await limiter.check('user:newcomer', { policy: 'plain' })
  const { fallbackAllowed } = store.health()
  const report = { peaks, victimAllowed, newcomer, modestNewcomer, fallbackAllowed }
  process.send(report, () => process.exit())
})
process.send('up')

/**
 * Mostly the whole limit in one request, from one caller each; now and then a leased one, and one that is denied.
 */
async function drive(name) {
  for (let from = 0; from < subjects; from += 500) {
    const pending = []
    for (let index = from; index < from + 500; index++) {
      const subject = `user:${name}${index.toString(36)}`
      pending.push(limiter.check(subject, { policy: 'plain', cost: 500 }))
      if (index % 10 !== 0) continue
      pending.push(limiter.check(subject, { policy: 'leased' }))
      pending.push(limiter.check(`${subject}-greedy`, { policy: 'plain', cost: 501 }))
    }
    await Promise.all(pending)
  }
}

function watch(name, method) {
  const Watched = globalThis[name]
  const add = Watched.prototype[method]
  Watched.prototype[method] = function (...entry) {
    const result = add.apply(this, entry)
    // Finding the caller is slow, and small maps are of no interest.
    if (this.size >= 1_000 && this.size % 500 <= 1) {
      const [, file] =
        /(?:packages\/headgate\/dist\/|node_modules\/)([\w./@-]+)/.exec(new Error().stack) ?? []
      peaks[file ?? name] = Math.max(peaks[file ?? name] ?? 0, this.size)
    }
    return result
  }
}
