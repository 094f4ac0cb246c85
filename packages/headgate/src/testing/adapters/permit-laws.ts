import { concurrency } from '../../algorithms/concurrency.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { type ConfigOptions, defineConfig, type PolicyInput } from '../../config/define-config.js'
import { createLimiter, type Limiter } from '../../limiter/limiter.js'
import { same } from '../laws/law.js'
import { type AdapterLaw, type AnyLimit, limitOf, SUBJECT } from './adapter-law.js'
import { type Begun, beginRequest, send } from './http-client.js'

/** Laws of permits: a request holds its permit while it is in flight, and gives it back when it ends. */
export const permitLaws: readonly AdapterLaw[] = [
  {
    name: 'an adapter holds a permit while a request is in flight and gives it back when the response ends',
    async run({ serve }) {
      const limiter = onePermit()
      const { url } = await serve(optionsOf(limiter, 'one'))
      const first = await inFlight(url, limiter)
      const denied = await send(url)
      same([denied.status, denied.header('retry-after')], [429, '1'], 'while another is in flight')
      same((await first.finish()).status, 200, 'the first')
      same(await statusWhenFree(url), 200, 'afterwards')
      same(await statusWhenFree(url), 200, 'and again')
    },
  },
  {
    name: 'an adapter gives a permit back when the client goes away',
    async run({ serve }) {
      const limiter = onePermit()
      const { url } = await serve(optionsOf(limiter, 'one'))
      const first = await inFlight(url, limiter)
      same((await send(url)).status, 429, 'while another is in flight')
      first.abandon()
      same(await statusWhenFree(url), 200, 'afterwards')
    },
  },
  {
    name: 'an adapter gives back the place of a request that a limit further in denies',
    async run({ serve }) {
      const none = createLimiter({ policies: { none: concurrency({ limit: 0 }) } })
      const { url } = await serve(optionsOf(onePermit(), 'one'), optionsOf(none, 'none'))
      for (let time = 0; time < 3; time++)
        same(JSON.parse((await sendUnless(url, 'one')).body).policy, 'none', 'who denies')
    },
  },
  {
    name: 'an adapter refunds a request whose response has a status that refundIf names',
    async run({ serve }) {
      const { url } = await serve(
        limitOf(1, { refundIf: { status: status => status === 200, atMost: '9/1m' } }),
      )
      for (let time = 0; time < 3; time++) same(await statusWhenFree(url), 200, 'what is free')
      const dear = await serve(limitOf(1, { refundIf: status => status === 404 }))
      same((await send(dear.url)).status, 200, 'what is not')
      same((await send(dear.url)).status, 429, 'what is not, again')
    },
  },
  {
    name: 'an adapter refunds no more than the limit admits, or than atMost',
    async run({ serve }) {
      const expectPassed = async (limit: AnyLimit, passed: number, what: string) => {
        const { url } = await serve(limit)
        for (let time = 0; time < passed; time++) same(await statusWhenFree(url), 200, what)
        for (let time = 0; time < 3; time++) {
          await pause()
          same((await send(url)).status, 429, `more than ${what}`)
        }
      }
      const isFree = (status: number) => status === 200
      await expectPassed(limitOf(1, { refundIf: isFree }), 2, 'the limit, once more')
      await expectPassed(limitOf(1, { refundIf: { status: isFree, atMost: '3/1m' } }), 4, 'atMost')
      await expectPassed(gateOf(200), 2, 'the limit of a rule, once more')
      await expectPassed(gateOf({ status: '2xx', atMost: '3/1m' }), 4, 'atMost of a rule')
    },
  },
  {
    name: 'an adapter refunds a request whose response has a status that a rule of the policy file names',
    async run({ serve }) {
      const free = await serve(gateOf({ status: 200, atMost: '9/1m' }))
      for (let time = 0; time < 3; time++) same(await statusWhenFree(free.url), 200, 'what is free')
      const { url } = await serve(gateOf(['4xx', 304]))
      same((await send(url)).status, 200, 'what is not')
      same((await send(url)).status, 429, 'what is not, again')
    },
  },
]

/** Creates a limiter that admits one request a minute, not counting responses with these statuses. */
function gateOf(refundIf: RefundIfOfRule): AnyLimit {
  const config = defineConfig({
    policies: { one: slidingWindowLog({ limit: 1, window: '1m' }) },
    default: { policy: 'one' },
    rules: [{ match: { path: '/*' }, policy: 'one', refundIf }],
  })
  return { limiter: createLimiter({ config }), subject: SUBJECT } as AnyLimit
}

type Rules = ConfigOptions<Record<string, PolicyInput>, 'default'>['rules'] & {}
type RefundIfOfRule = Rules[number]['refundIf'] & {}
type AnyLimiter = Limiter<string, string>

function onePermit(): AnyLimiter {
  return createLimiter({ policies: { one: concurrency({ limit: 1 }) } }) as object as AnyLimiter
}

function optionsOf(limiter: object, policy: string): AnyLimit {
  return { limiter, policy, subject: SUBJECT } as AnyLimit
}

/** Starts a request that holds its permit while the app waits for the rest of its body. */
async function inFlight(url: string, limiter: AnyLimiter): Promise<Begun> {
  const begun = await beginRequest(url)
  for (let tries = 0; tries < TRIES; tries++) {
    if (!(await limiter.peek(SUBJECT, { policy: 'one' })).allowed) return begun
    await pause()
  }
  throw new Error('expected the request to take its place; it did not')
}

const TRIES = 100
const pause = () => new Promise(resolve => setTimeout(resolve, 5))

/** Retries, because a client may have its response a moment before the server knows that it was sent. */
async function statusWhenFree(url: string): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { status } = await send(url)
    if (status !== 429) return status
    await pause()
  }
  return 429
}

async function sendUnless(url: string, policy: string) {
  let answer = await send(url)
  for (let tries = 0; tries < TRIES && JSON.parse(answer.body).policy === policy; tries++) {
    await pause()
    answer = await send(url)
  }
  return answer
}
