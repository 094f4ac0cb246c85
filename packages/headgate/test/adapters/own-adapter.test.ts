import { expect, it } from 'vitest'
import type { AnyOptions } from '../../src/adapter.ts'
import { createLimiter, slidingWindowLog } from '../../src/index.ts'
import { runShown } from '../support/shown-program.ts'

interface Call {
  readonly method: string
  readonly target: string
  readonly remoteAddress: string
  readonly headers: Record<string, string>
  readonly answer: { status: number; headers: Record<string, string>; body: string }
}

interface Shown {
  rateLimit(options: AnyOptions<Call>): (call: Call, next: () => void) => Promise<void>
}

async function shownAdapter(): Promise<Shown['rateLimit']> {
  return (await runShown<Shown>('frameworks.md', '## An adapter of your own')).rateLimit
}

it('the adapter that the guide shows limits a framework that nobody has heard of', async () => {
  const rateLimit = await shownAdapter()
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
  const limited = rateLimit({ limiter, policy: 'api' })
  const ask = async (remoteAddress: string) => {
    const answer: Call['answer'] = { status: 200, headers: {}, body: '' }
    await limited({ method: 'GET', target: '/', remoteAddress, headers: {}, answer }, () => {
      answer.body = 'hello'
    })
    return [answer.status, answer.headers['X-RateLimit-Remaining'], answer.body.slice(0, 7)]
  }
  expect(await ask('192.0.2.1')).toEqual([200, '0', 'hello'])
  expect(await ask('192.0.2.1')).toEqual([429, '0', '{"type"'])
  expect(await ask('192.0.2.2')).toEqual([200, '0', 'hello'])
})

it('the adapter that the guide shows gives units back by the status of the answer', async () => {
  const rateLimit = await shownAdapter()
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
  const limited = rateLimit({
    limiter,
    policy: 'api',
    refundIf: { status: status => status === 304, atMost: '9/1m' },
  })
  const ask = async (becomes: number) => {
    const answer: Call['answer'] = { status: 200, headers: {}, body: '' }
    await limited({ method: 'GET', target: '/', remoteAddress: '192.0.2.1', headers: {}, answer }, () => {
      answer.status = becomes
    })
    return answer.status
  }
  expect([await ask(304), await ask(304), await ask(200), await ask(200)]).toEqual([304, 304, 200, 429])
})
