import { concurrency } from '../../algorithms/concurrency.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { defineConfig } from '../../config/define-config.js'
import { createLimiter } from '../../limiter/limiter.js'
import { same } from '../laws/law.js'
import { type AdapterLaw, type AnyLimit, limitOf, type Served, SUBJECT } from './adapter-law.js'
import { type Begun, beginRequest, type ReceivedResponse, send } from './http-client.js'

const LONG = '30s'

/** Laws of `wait`: a request that could pass soon is held, in order and within bounds, as one decision. */
export const waitLaws: readonly AdapterLaw[] = [
  {
    name: 'an adapter holds requests until there is room, in the order in which they came, each as one decision',
    async run({ serve }) {
      const line = lineOf({ atMost: LONG })
      const served = await serve(line.limit)
      const first = await line.begin(served)
      const second = await line.wait(served, 'second')
      const third = await line.wait(served, 'third')
      same(served.handled.length, 0, 'how many were handled while the first is in flight')
      same((await first.finish()).status, 200, 'the first')
      same([(await second()).status, (await third()).status], [200, 200], 'those that waited')
      same(served.handled.slice(1), ['second', 'third'], 'the order')
      same(line.decided, { decision: 3, denial: 0 }, 'the decisions')
    },
  },
  {
    name: 'an adapter denies a request at once if as many of its caller wait as may',
    async run({ serve }) {
      const line = lineOf({ atMost: LONG, queue: 1 })
      const served = await serve(line.limit)
      const first = await line.begin(served)
      const second = await line.wait(served, 'second')
      same((await send(served.url)).status, 429, 'beyond the queue')
      same((await first.finish()).status, 200, 'the first')
      same((await second()).status, 200, 'the one that waited')
      same(line.decided, { decision: 2, denial: 1 }, 'the decisions')
    },
  },
  {
    name: 'an adapter forgets a request that waits when its client leaves',
    async run({ serve }) {
      const line = lineOf({ atMost: LONG, queue: 1 })
      const served = await serve(line.limit)
      const first = await line.begin(served)
      const second = await line.begin(served)
      second.abandon()
      await until(() => line.decided.denial === 1, 'the one that left to be counted as denied')
      const third = await line.wait(served, 'third')
      same((await first.finish()).status, 200, 'the first')
      same((await third()).status, 200, 'the one that took its place')
      same(served.handled.slice(1), ['third'], 'who was handled')
      same(line.decided, { decision: 2, denial: 1 }, 'the decisions')
    },
  },
  {
    name: 'an adapter denies a request at once that could not pass within its wait',
    async run({ serve }) {
      const { url } = await serve(limitOf(1, { wait: { atMost: '20s' } }))
      same((await send(url)).status, 200, 'the first')
      const denied = await send(url)
      same([denied.status, denied.header('retry-after')], [429, '60'], 'one that would wait for a minute')
    },
  },
  {
    name: 'an adapter holds a request as long as a rule of the policy file says',
    async run({ serve }) {
      const config = defineConfig({
        policies: { one: slidingWindowLog({ limit: 1, window: '300ms' }) },
        default: { policy: 'one' },
        rules: [{ match: { path: '/hello' }, policy: 'one', wait: { atMost: '20s' } }],
      })
      const decided: Decided = { decision: 0, denial: 0 }
      const limiter = createLimiter({ config, onEvent: countIn(decided) })
      const { url } = await serve({ limiter, subject: SUBJECT } as AnyLimit)
      const all = await Promise.all([send(url), send(url), send(url)])
      same(
        all.map(({ status }) => status),
        [200, 200, 200],
        'three at once, one in 300 ms',
      )
      same(decided, { decision: 3, denial: 0 }, 'the decisions')
    },
  },
]

interface Decided {
  decision: number
  denial: number
}

function countIn(decided: Decided): (event: { readonly type: string }) => void {
  return ({ type }) => {
    if (type === 'decision' || type === 'denial') decided[type]++
  }
}

/** A limit of one request at a time, which shows who has come and what was decided. */
function lineOf(wait: { readonly atMost: '30s'; readonly queue?: number }) {
  const decided: Decided = { decision: 0, denial: 0 }
  const limiter = createLimiter({
    policies: { one: concurrency({ limit: 1 }) },
    onEvent: countIn(decided),
  })
  let came = 0
  const skip = () => {
    came++
    return false
  }
  const limit = { limiter, policy: 'one', subject: SUBJECT, wait, skip } as object as AnyLimit
  return {
    limit,
    decided,
    /** Starts a request, and returns when it holds the permit or waits. */
    async begin({ url }: Served): Promise<Begun> {
      const before = came
      const begun = await beginRequest(url)
      await until(() => came > before, 'the request to come')
      return begun
    },
    /** The same for one that has nothing more to send; what is returned gets its answer. */
    async wait({ url }: Served, body: string): Promise<() => Promise<ReceivedResponse>> {
      const before = came
      const answer = send(url, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/octet-stream' },
      })
      await until(() => came > before, 'the request to come')
      return () => answer
    },
  }
}

const TRIES = 2_000

async function until(holds: () => boolean, what: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    if (holds()) return
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  throw new Error(`expected ${what}; it did not happen`)
}
