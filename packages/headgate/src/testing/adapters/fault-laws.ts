import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { createLimiter } from '../../limiter/limiter.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import { faultyStore } from '../faulty-store.js'
import { same } from '../laws/law.js'
import { type AdapterLaw, limiterOf, limitOf, SUBJECT } from './adapter-law.js'
import { sameHeaders, send, sendEndlessBody, statuses } from './http-client.js'

/** Makes the decision asynchronous. */
const laterSubject = () => Promise.resolve(SUBJECT)

/** The behaviour of an adapter when something else fails, is repeated, or comes too late. */
export const faultLaws: readonly AdapterLaw[] = [
  {
    name: 'an adapter lets the failure mode decide when the limiter is at fault',
    async run({ serve }) {
      const store = faultyStore(memoryStore())
      store.faults.always({ type: 'error' })
      const limiter = createLimiter({
        store,
        policies: { api: slidingWindowLog({ limit: 9, window: '1m' }) },
      })
      for (const [onStoreFailure, status] of [
        ['open', 200],
        ['closed', 503],
      ] as const) {
        const onError = () => {}
        const { url } = await serve({ limiter, policy: 'api', subject: SUBJECT, onStoreFailure, onError })
        const answer = await send(url)
        same(answer.status, status, onStoreFailure)
        same(answer.header('retry-after') !== undefined, status === 503, 'Retry-After')
        sameHeaders(answer, ['x-ratelimit-limit'], false)
      }
    },
  },
  {
    name: 'an adapter denies nobody by a policy in shadow, whatever fails and whatever its failure mode',
    async run({ serve }) {
      const store = faultyStore(memoryStore())
      store.faults.always({ type: 'error' })
      const watched = { limits: slidingWindowLog({ limit: 9, window: '1m' }), mode: 'shadow' } as const
      const limiter = createLimiter({ store, policies: { watched } })
      const nobody = () => {
        throw new Error('the directory is away')
      }
      for (const subject of [SUBJECT, nobody]) {
        const options = { limiter, policy: 'watched', subject, onStoreFailure: 'closed' } as const
        const { url } = await serve({ ...options, onError: () => {} })
        same((await send(url)).status, 200, String(subject))
      }
    },
  },
  {
    name: 'an adapter charges a request once where two limiters ask the same, and once each where they do not',
    async run({ serve }) {
      const limiter = limiterOf(2)
      const outer = { limiter, policy: 'api', subject: SUBJECT } as const
      const twice = await serve(outer, { ...outer, subject: laterSubject })
      same(await statuses(twice.url, [{}, {}, {}]), [200, 200, 429], 'the same twice')
      const both = await serve(limitOf(5), limitOf(3))
      const answer = await send(both.url)
      same([answer.status, answer.header('x-ratelimit-limit')], [200, '3'], 'the innermost tells')
      same(await statuses(both.url, [{}, {}, {}]), [200, 200, 429], 'different ones')
    },
  },
  {
    name: 'an adapter adds nothing to a response that has begun, and cuts it off instead of running the app if it is denied',
    applies: ({ canBeginEarly }) => canBeginEarly,
    async run({ serveEarly }) {
      const passing = await serveEarly(limitOf(1, { subject: laterSubject }))
      const answer = await send(passing.url)
      same([answer.status, answer.body], [200, 'hello'], 'passing')
      sameHeaders(answer, ['x-ratelimit-limit'], false)
      const denied = await serveEarly(limitOf(0))
      const ended = await send(denied.url).then(
        () => 'answered',
        () => 'cut off',
      )
      same(ended, 'cut off', 'denied')
      same(denied.handled.length, 0, 'requests that reached the app')
    },
  },
  {
    name: 'an adapter reads nothing of a body before the decision, and hands it on whole after it',
    async run({ serve }) {
      const body = 'x'.repeat(200_000)
      const { url, handled } = await serve(limitOf(1, { subject: laterSubject }))
      same((await send(url, { method: 'POST', body })).status, 200, 'status')
      same(handled[0]?.length, body.length, 'length of the body')
    },
  },
  {
    name: 'an adapter rejects before a body was sent, and closes the connection instead of reading all of it',
    async run({ serve }) {
      const { url, handled } = await serve(limitOf(0))
      same(await sendEndlessBody(url), 'HTTP/1.1 429 Too Many Requests', 'answer')
      same(handled.length, 0, 'requests that reached the app')
    },
  },
  {
    name: 'an adapter admits exactly the limit of many simultaneous requests',
    async run({ serve }) {
      const { url } = await serve(limitOf(7, { subject: laterSubject }))
      const answers = await Promise.all(Array.from({ length: 30 }, () => send(url)))
      same(answers.filter(({ status }) => status === 200).length, 7, 'passed')
      same(answers.filter(({ status }) => status === 429).length, 23, 'rejected')
    },
  },
]
