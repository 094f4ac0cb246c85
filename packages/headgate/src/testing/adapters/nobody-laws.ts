import type { AnyLimiterOptions } from '../../adapters/options.js'
import { same } from '../laws/law.js'
import { type AdapterLaw, type AnyLimit, limiterOf, SUBJECT } from './adapter-law.js'
import { send, statuses } from './http-client.js'

const never = new Promise<never>(() => {})
const boom = () => {
  throw new Error('no session')
}
const FAILING: readonly (readonly [string, () => unknown])[] = [
  ['throws', boom],
  ['rejects', () => Promise.reject(new Error('no session'))],
  ['never settles', () => never],
]
const NAMELESS: readonly (readonly [string, unknown])[] = [
  ['an empty id', 'user:'],
  ['a blank id', 'user: \t'],
  ['an empty id in a field', { type: 'apikey', id: '' }],
  ['a blank id in a field', { type: 'user', id: '  ' }],
  ['undefined in a text', 'user:undefined'],
  ['null in a text', 'user:null'],
  ['undefined in a field', { type: 'user', id: undefined }],
  ['no type', 'somebody'],
  ['rubbish', { id: 7 }],
  ['an empty text', ''],
]

/** Laws of callers whom nobody names: they are held to a budget, never let past it. */
export const nobodyLaws: readonly AdapterLaw[] = [
  ...FAILING.map(
    ([fault, subject]): AdapterLaw => ({
      name: `an adapter charges the address when a subject ${fault}, and tells; with onStoreFailure closed it rejects with 503`,
      async run({ serve, adapter }) {
        const limiter = limiterOf(2)
        const errors: unknown[] = []
        const onError = (error: unknown) => errors.push(error)
        const options = { limiter, policy: 'api', subject, lookupTimeoutMs: 30, onError, logger: quiet([]) }
        const open = await serve({ ...options, onStoreFailure: 'open' } as AnyLimit)
        same(await statuses(open.url, [{}, {}, {}]), [200, 200, 429], 'statuses')
        same(errors.length, 3, 'told')
        same(limiter.counts().faults, 0, 'requests without a decision')
        same((await limiter.peek(nobody(adapter), { policy: 'api' })).remaining, 0, 'left of the address')
        const closed = await serve({ ...options, onStoreFailure: 'closed' } as AnyLimit)
        const rejected = await send(closed.url)
        same([rejected.status, rejected.header('retry-after') !== undefined], [503, true], 'closed')
        same([errors.length, limiter.counts().faults], [4, 1], 'told and counted')
      },
    }),
  ),
  {
    name: 'an adapter charges the address for a subject that names nobody, in every failure mode, and warns once',
    async run({ serve, adapter }) {
      for (const [index, [what, value]] of NAMELESS.entries()) {
        const limiter = limiterOf(2)
        const codes: unknown[] = []
        const { url } = await serve({
          limiter,
          policy: 'api',
          subject: index % 2 === 0 ? () => value : async () => value,
          onStoreFailure: index % 3 === 0 ? 'closed' : 'open',
          logger: quiet(codes),
        } as AnyLimit)
        same(await statuses(url, [{}, {}, {}]), [200, 200, 429], what)
        same((await limiter.peek(nobody(adapter), { policy: 'api' })).remaining, 0, `${what}: left`)
        const shared = adapter.knowsPeer ? [] : ['WARN_HEADGATE_NO_ADDRESS']
        same(codes, ['WARN_HEADGATE_NAMES_NOBODY', ...shared], `${what}: warnings`)
      }
    },
  },
  {
    name: 'an adapter charges the address for a subject that returns nothing, without a warning that it does',
    async run({ serve }) {
      for (const nothing of [undefined, null]) {
        const codes: unknown[] = []
        const subject = () => nothing
        const logger = quiet(codes)
        const { url } = await serve({ limiter: limiterOf(1), policy: 'api', subject, logger } as AnyLimit)
        same(await statuses(url, [{}, {}]), [200, 429], String(nothing))
        same(codes.includes('WARN_HEADGATE_NAMES_NOBODY'), false, 'warned')
      }
    },
  },
  {
    name: 'an adapter limits a request whose cost, scope, tier or skip fails or is of no use',
    async run({ serve }) {
      const useless: Partial<Record<keyof AnyLimiterOptions<unknown>, unknown>>[] = [
        { cost: boom },
        { cost: () => -1 },
        { cost: () => Number.NaN },
        { scope: () => 42 },
        { scope: boom },
        { skip: boom },
        { also: boom },
        { also: () => [{ subject: 'tenant:', policy: 'api' }] },
      ]
      for (const [index, more] of useless.entries()) {
        const options = { limiter: limiterOf(2), policy: 'api', subject: SUBJECT, logger: quiet([]) }
        const { url } = await serve({ ...options, onError: () => {}, ...more } as AnyLimit)
        same(await statuses(url, [{}, {}, {}]), [200, 200, 429], `${Object.keys(more)} ${index}`)
      }
    },
  },
]

/** The subject that is charged for a caller whom nobody names. */
function nobody({ knowsPeer }: { readonly knowsPeer: boolean }): string {
  return knowsPeer ? 'ip:127.0.0.1' : 'anonymous:unknown'
}

/** A logger that keeps the codes of warnings. */
function quiet(codes: unknown[]): NonNullable<AnyLimit['logger']> {
  return { info: () => {}, error: () => {}, warn: ({ code }) => void codes.push(code) }
}
