/** The OpenAPI document is true: it lists exactly the existing operations, and bodies and answers match it. */
import { createRequire } from 'node:module'
import { createLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decisionEndpoints } from '../src/decision-api/decision-endpoints.js'
import { OPENAPI_DOCUMENT } from '../src/decision-api/openapi/openapi-document.js'
import { usageEndpoints } from '../src/decision-api/usage-endpoints.js'
import { operatorEndpoints } from '../src/operators/operator-endpoints.js'
import type { UsagePages } from '../src/redis/usage-pages.js'
import { type AdminApi, serveAdmin } from './support/admin-api.js'

const { Ajv2020 } = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
const ajv = new Ajv2020({ strict: false, allErrors: true })
ajv.addSchema({ ...OPENAPI_DOCUMENT, $id: 'api' })

const limiter = createLimiter({
  config: defineConfig({
    policies: {
      api: { algorithm: 'sliding-window-log', limit: 3, window: '1m' },
      plan: { algorithm: 'quota', limit: 10, per: 'month' },
    },
    tiers: { free: { minute: 5 }, staff: {} },
    default: { policy: 'api' },
  }),
})
const PAGES: UsagePages = {
  read: async () => ({
    rows: [
      {
        ...{ id: '0f', subject: 'user:1', policy: 'plan', quota: 'quota-month', scope: 'global' },
        ...{ startsAt: '2027-01-01T00:00:00.000Z', endsAt: '2027-02-01T00:00:00.000Z' },
        ...{ used: 3, paidWithCredits: 0, overage: 0 },
      },
    ],
    next: null,
    leftOut: 0,
  }),
  close: async () => {},
}
let api: AdminApi

beforeAll(async () => {
  api = await serveAdmin(limiter, [], PAGES)
})
afterAll(() => api.close())

type Operation = {
  requestBody?: { content: { 'application/json': { schema: unknown } } }
  responses: Record<string, { content: Record<string, { schema: unknown }> }>
}
const operations = Object.entries(OPENAPI_DOCUMENT.paths).flatMap(([path, item]) =>
  Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
    path,
    method,
    operation,
  })),
)

function pointer(...parts: string[]): string {
  return `api#/${parts.map(part => encodeURIComponent(part.replaceAll('/', '~1'))).join('/')}`
}

function objections(at: string, value: unknown): string {
  const validate = ajv.getSchema(at)
  if (validate === undefined) throw new Error(`no schema at ${at}`)
  return validate(value) ? '' : ajv.errorsText(validate.errors)
}

it('the document lists the paths and methods that there are', () => {
  const offered = [
    ...decisionEndpoints(
      limiter,
      () => {},
      () => null,
    ),
    ...operatorEndpoints(
      limiter,
      () => null,
      () => {},
    ),
    ...usageEndpoints(limiter, { subjectOf: () => null, show: subject => subject, pages: PAGES }),
  ].flatMap(({ path, methods }) => Object.keys(methods).map(method => `${method} ${path}`))
  expect(operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`).sort()).toEqual(
    offered.sort(),
  )
})

it('the document is served, and refers to nothing that is missing', async () => {
  const served = await fetch(`${api.url}/v1/openapi.json`)
  expect(await served.json()).toEqual(JSON.parse(JSON.stringify(OPENAPI_DOCUMENT)))
  for (const { path, method } of operations) {
    const at = pointer('paths', path, method, 'responses', '200', 'content', 'application/json', 'schema')
    expect(ajv.getSchema(at)).toBeTypeOf('function')
  }
})

/** In an order in which each has something to find. */
const SOUND: readonly [string, string, unknown][] = [
  ['post', '/v1/check', { subject: 'user:1', policy: 'api', scope: 'a', cost: 2, refundable: true }],
  ['post', '/v1/check', { subject: { type: 'user', id: '1' }, tier: 'staff' }],
  ['post', '/v1/check', { subject: ['user:1', 'ip:192.0.2.1'], method: 'GET', path: '/', tier: 'free' }],
  ['post', '/v1/check', { subject: ['user:1'], claimedMethods: ['PUT'], cost: 9, scope: 'b' }],
  ['post', '/v1/check', { checks: [{ subject: 'user:1', tier: 'free' }] }],
  ['post', '/v1/peek', { subject: 'user:1', policy: 'api' }],
  ['post', '/v1/reset', { subject: 'user:1', policy: 'api', scope: 'a' }],
  ['post', '/v1/reset', { subject: 'user:1' }],
  ['post', '/v1/inspect', { subject: 'user:1', tier: 'free', scope: 'a' }],
  ['post', '/v1/credit', { subject: 'user:1', policy: 'plan', units: 5, id: 'a', expires: 'period' }],
  ['get', '/v1/control', undefined],
  ['patch', '/v1/control', { multiplier: 1 }],
  [
    ...(['put', '/v1/overrides'] as const),
    { subject: 'user:1', tier: 'free', ttl: '1h', by: 'ada', reason: 'launch' },
  ],
  ['post', '/v1/overrides/preview', { subject: 'user:1', numbers: { minute: 1 } }],
  ['get', '/v1/overrides', undefined],
  ['delete', '/v1/overrides', { subject: 'user:1' }],
  ['get', '/v1/restore', undefined],
  ['post', '/v1/restore', undefined],
  ['delete', '/v1/restore', undefined],
  ['post', '/v1/explain', { subject: 'user:1', path: '/' }],
  ['get', '/v1/counts', undefined],
]

async function send(method: string, path: string, body: unknown): Promise<Response> {
  return fetch(`${api.url}${path}`, {
    method: method.toUpperCase(),
    ...(body !== undefined && {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
}

describe('bodies that the document allows are accepted by the API, and its answers are as described', () => {
  it.each(SOUND)(
    'a call that is sound to the document is sound to the API, and its answer is as described: %s %s %j',
    async (method, path, body) => {
      if (body !== undefined) {
        const at = pointer('paths', path, method, 'requestBody', 'content', 'application/json', 'schema')
        expect(objections(at, body)).toBe('')
      }
      const answer = await send(method, path, body)
      expect(answer.status).toBe(200)
      const at = pointer('paths', path, method, 'responses', '200', 'content', 'application/json', 'schema')
      expect(objections(at, await answer.json())).toBe('')
    },
  )

  it('a refund is answered as the document describes', async () => {
    const check = await send('post', '/v1/check', { subject: 'user:2', policy: 'api', refundable: true })
    const { reference } = (await check.json()) as { reference: string }
    const answer = await send('post', '/v1/refund', { reference, units: 1 })
    expect(objections(pointer('components', 'schemas', 'Refunded'), await answer.json())).toBe('')
  })

  it('a release is answered as the document describes', async () => {
    const check = await send('post', '/v1/check', { subject: 'user:3', policy: 'api', refundable: true })
    const { reference } = (await check.json()) as { reference: string }
    const answer = await send('post', '/v1/release', { reference })
    expect(answer.status).toBe(200)
    const at = pointer(
      'paths',
      '/v1/release',
      'post',
      'responses',
      '200',
      'content',
      'application/json',
      'schema',
    )
    expect(objections(at, await answer.json())).toBe('')
  })

  it.each([
    ['/v1/usage', '?subject=user:1'],
    ['/v1/usage/export', '?policy=plan&period=previous&limit=9'],
  ])('%s is answered as the document describes', async (path, query) => {
    const answer = await send('get', `${path}${query}`, undefined)
    const at = pointer('paths', path, 'get', 'responses', '200', 'content', 'application/json', 'schema')
    expect([answer.status, objections(at, await answer.json())]).toEqual([200, ''])
  })

  it('every operation of the document is tried', () => {
    const tried = new Set([
      ...SOUND.map(([method, path]) => `${method} ${path}`),
      'post /v1/refund',
      'post /v1/release',
      'get /v1/usage',
      'get /v1/usage/export',
    ])
    expect(operations.map(({ path, method }) => `${method} ${path}`).filter(one => !tried.has(one))).toEqual(
      [],
    )
  })
})

describe('bodies that the API rejects are forbidden by the document, and the problem is as described', () => {
  it.each<[string, string, unknown]>([
    ['post', '/v1/check', {}],
    ['post', '/v1/check', { subject: 'user:1' }],
    ['post', '/v1/check', { subject: 'user', policy: 'api' }],
    ['post', '/v1/check', { subject: 'user:1', policy: 'api', tier: 'free' }],
    ['post', '/v1/check', { subject: 'user:1', policy: 'api', cost: -1 }],
    ['post', '/v1/check', { subject: 'user:1', policy: 'api', path: '/' }],
    ['post', '/v1/check', { subject: 'user:1', policy: 'api', unknown: 1 }],
    ['post', '/v1/check', { subject: [], path: '/' }],
    ['post', '/v1/check', { checks: [] }],
    ['post', '/v1/refund', { units: 1 }],
    ['post', '/v1/release', {}],
    ['post', '/v1/refund', { reference: 'x', units: 0 }],
    ['post', '/v1/reset', {}],
    ['post', '/v1/inspect', { subject: 7 }],
    ['patch', '/v1/control', { multiplier: '2' }],
  ])(
    'a call that the API rejects the document rejects, and the problem is as described: %s %s %j',
    async (method, path, body) => {
      const at = pointer('paths', path, method, 'requestBody', 'content', 'application/json', 'schema')
      expect(objections(at, body)).not.toBe('')
      const answer = await send(method, path, body)
      expect(answer.status).toBe(400)
      expect(
        operations.find(one => one.path === path && one.method === method)?.operation.responses,
      ).toHaveProperty('400')
      expect(objections(pointer('components', 'schemas', 'Problem'), await answer.json())).toBe('')
    },
  )
})
