/** Runs the first program of each framework's page as it stands: five requests pass, the sixth does not. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { NextRequest } from 'next/server.js'
import { beforeAll, expect, it } from 'vitest'
import { runShown, runShownAs } from './support/shown-program.ts'

beforeAll(() => {
  process.env.PORT = '0'
})

const FIVE = [200, 200, 200, 200, 200, 429]

async function six(ask: () => Promise<Response>): Promise<Response[]> {
  const answers: Response[] = []
  for (let time = 0; time < 6; time++) answers.push(await ask())
  return answers
}
const statusesOf = (answers: readonly Response[]): number[] => answers.map(({ status }) => status)

it.each([
  ['express', '/'],
  ['fastify', '/'],
  ['hono', '/'],
  ['koa', '/'],
  ['nest', '/'],
  ['trpc', '/hello'],
  ['node-http', '/'],
])('the first program of the page about %s', async (page, path) => {
  const { server } = await runShownAs<{ server: Server }>(
    `docs/guide/frameworks/${page}.md`,
    '\n```ts',
    'server',
  )
  if (!server.listening) await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const answers = await six(() => fetch(`http://127.0.0.1:${port}${path}`))
  expect(statusesOf(answers)).toEqual(FIVE)
  expect(answers[5]?.headers.get('retry-after')).toMatch(/^\d+$/)
  if (page !== 'nest' && page !== 'trpc') expect(await answers[0]?.text()).toContain('4')
  server.closeAllConnections()
  server.close()
})

it('the first program of the page about Next.js', async () => {
  const { GET } = await runShown<{ GET(request: Request): Promise<Response> }>(
    'frameworks/next.md',
    '\n```ts',
  )
  expect(statusesOf(await six(() => GET(new NextRequest('http://localhost/api/hello'))))).toEqual(FIVE)
})

it('the first program of the page about fetch handlers', async () => {
  const worker = await runShown<{ default: { fetch(request: Request): Promise<Response> } }>(
    'frameworks/fetch.md',
    '\n```ts',
  )
  const request = () => new Request('http://localhost/', { headers: { 'cf-connecting-ip': '192.0.2.1' } })
  expect(statusesOf(await six(() => worker.default.fetch(request())))).toEqual(FIVE)
})
