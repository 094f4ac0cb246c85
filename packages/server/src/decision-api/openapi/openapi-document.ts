/** Describes the decision API as an OpenAPI 3.1 document. A test compares it with the API. */
import { type Endpoint, reads } from '../../admin/endpoint.js'
import { jsonAnswer } from '../../http/problem.js'
import { ref, SCHEMAS } from './schemas.js'

type Json = Readonly<Record<string, unknown>>

interface Described {
  readonly summary: string
  /** The schemas of its parameters in the query. */
  readonly query?: Readonly<Record<string, Json & { readonly required?: boolean }>>
  readonly body?: Json
  readonly answer: Json
  /** Whether it answers with CSV when asked for it. */
  readonly isCsvToo?: boolean
  /** Statuses beside 200 that it has a reason for, and their meaning. */
  readonly problems?: Readonly<Record<number, string>>
}

const BAD_BODY = { 400: 'A field is wrong; `field` names it.', 413: 'Above 64 KB.', 415: 'Not JSON.' }
const STORE_AWAY = { 503: 'The store does not answer; `Retry-After` says when to try again.' }
const json = (schema: Json): Json => ({ 'application/json': { schema } })
const overrides = {
  type: 'object',
  required: ['overrides'],
  additionalProperties: false,
  properties: { overrides: { type: 'array', items: ref('Override') } },
}

const DECISION_BODY = { anyOf: [ref('Check'), ref('Checks')] }
const DECISION_ANSWER = { anyOf: [ref('Decision'), ref('Decisions')] }

const NAMES = { policy: { type: 'string' }, tier: { type: 'string' } }
const QUOTAS = { type: 'array', items: ref('QuotaUsage') }

const PATHS: Readonly<Record<string, Readonly<Record<string, Described>>>> = {
  '/v1/check': {
    post: {
      summary: 'Charge a request if every limit has room for it. 200 whether or not it is allowed.',
      body: DECISION_BODY,
      answer: DECISION_ANSWER,
      problems: BAD_BODY,
    },
  },
  '/v1/peek': {
    post: {
      summary:
        'Return what /v1/check would, without charging; `remaining` is what is left before the request.',
      body: DECISION_BODY,
      answer: DECISION_ANSWER,
      problems: BAD_BODY,
    },
  },
  '/v1/refund': {
    post: {
      summary: 'Give back what a check charged, or some units of it, as far as it still counts.',
      body: ref('Refund'),
      answer: ref('Refunded'),
      problems: { ...BAD_BODY, 404: 'No such reference, or it is forgotten.' },
    },
  },
  '/v1/release': {
    post: {
      summary: 'Report the end of a request, which frees its permit.',
      body: ref('Release'),
      problems: { ...BAD_BODY, 404: 'No such reference, or it is forgotten.' },
      answer: { type: 'object', properties: { released: { const: true } }, required: ['released'] },
    },
  },
  '/v1/reset': {
    post: {
      summary: 'Clear what a subject has used: of a policy or tier, or everything kept about it alone.',
      body: ref('Reset'),
      problems: { ...BAD_BODY, ...STORE_AWAY },
      answer: { type: 'object', properties: { reset: { const: true } }, required: ['reset'] },
    },
  },
  '/v1/inspect': {
    post: {
      summary: 'All limits of a subject and their state, in numbers and words, with their keys in Redis.',
      body: ref('Inspect'),
      answer: ref('Inspection'),
      problems: { ...BAD_BODY, ...STORE_AWAY },
    },
  },
  '/v1/usage': {
    get: {
      summary: 'What a subject has used of its quotas, in this period and the one before.',
      query: { subject: { type: 'string', required: true }, ...NAMES, scope: { type: 'string' } },
      answer: { type: 'object', required: ['quotas'], properties: { quotas: QUOTAS } },
      problems: { 400: 'A field is wrong; `field` names it.', 404: 'No such reference.', ...STORE_AWAY },
    },
  },
  '/v1/usage/export': {
    get: {
      summary:
        'A page of what all callers have used of the quotas of a policy or tier. Go on with `next` until it is null; a row may come twice, with the same id.',
      query: {
        ...NAMES,
        period: { enum: ['current', 'previous'], default: 'current' },
        format: { enum: ['json', 'csv'], default: 'json' },
        cursor: { type: 'string' },
        limit: { type: 'integer', minimum: 1, maximum: 1_000, default: 500 },
      },
      answer: ref('UsagePage'),
      isCsvToo: true,
      problems: {
        400: 'A field is wrong; `field` names it. `cursor`: begin again without one.',
        409: 'The server has no Redis.',
        ...STORE_AWAY,
      },
    },
  },
  '/v1/credit': {
    post: {
      summary: 'Add units to the quotas of a policy or tier of a subject. The same id credits once.',
      body: ref('Credit'),
      answer: {
        type: 'object',
        required: ['added', 'quotas'],
        properties: { added: { type: 'boolean' }, quotas: QUOTAS },
      },
      problems: { ...BAD_BODY, 404: 'No such reference.', ...STORE_AWAY },
    },
  },
  '/v1/control': {
    get: { summary: "The fleet's switches.", answer: ref('Control'), problems: STORE_AWAY },
    patch: {
      summary: 'Switch the fleet on or off, or scale every limit.',
      body: ref('ControlChange'),
      answer: ref('Control'),
      problems: { ...BAD_BODY, ...STORE_AWAY },
    },
  },
  '/v1/overrides': {
    get: { summary: 'The overrides in force.', answer: overrides, problems: STORE_AWAY },
    put: {
      summary:
        'Replace the numbers of a subject, a rule, or a subject on a rule for a while; returns what it changes.',
      body: ref('OverrideChange'),
      answer: {
        ...overrides,
        required: ['overrides', 'effect'],
        properties: { ...overrides.properties, effect: ref('OverrideEffect') },
      },
      problems: { ...BAD_BODY, ...STORE_AWAY },
    },
    delete: {
      summary: 'End an override before its time.',
      body: { type: 'object', properties: { subject: { type: 'string' }, rule: { type: 'string' } } },
      answer: { type: 'object', properties: { removed: { type: 'boolean' } }, required: ['removed'] },
      problems: { ...BAD_BODY, ...STORE_AWAY },
    },
  },
  '/v1/overrides/preview': {
    post: {
      summary:
        'What an override would change: the limits now and after. Sets nothing; ttl, by and reason may be left out.',
      body: { type: 'object' },
      answer: ref('OverrideEffect'),
      problems: BAD_BODY,
    },
  },
  '/v1/restore': {
    get: {
      summary: 'What the store has lost and this server still applies.',
      answer: { type: 'object', required: ['lost'] },
    },
    post: {
      summary: 'Write it back, for every process.',
      answer: { type: 'object', required: ['restored'] },
      problems: STORE_AWAY,
    },
    delete: {
      summary: 'Drop it, in every process.',
      answer: { type: 'object', required: ['cleared'] },
      problems: STORE_AWAY,
    },
  },
  '/v1/explain': {
    post: {
      summary: 'Which rules a request matches and why; charges nothing.',
      body: { type: 'object', required: ['subject'] },
      problems: BAD_BODY,
      answer: { type: 'object', required: ['levels', 'text'] },
    },
  },
  '/v1/counts': {
    get: { summary: 'Counts since the start.', answer: { type: 'object', required: ['faults'] } },
  },
}

export const OPENAPI_DOCUMENT = {
  openapi: '3.1.0',
  info: {
    title: 'Headgate decision API',
    version: 'v1',
    description: 'Limits over HTTP. Every response carries `Headgate-Api: v1`.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: 'http://127.0.0.1:8082' }],
  security: [{}, { token: [] }],
  paths: Object.fromEntries(Object.entries(PATHS).map(([path, methods]) => [path, pathItem(methods)])),
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    schemas: SCHEMAS,
  },
}

function pathItem(methods: Readonly<Record<string, Described>>): Json {
  return Object.fromEntries(Object.entries(methods).map(([name, described]) => [name, operation(described)]))
}

function operation({ summary, query, body, answer, isCsvToo, problems = {} }: Described): Json {
  const rejections = Object.entries(problems).map(([status, description]) => [
    status,
    { description, content: { 'application/problem+json': { schema: ref('Problem') } } },
  ])
  const parameters = Object.entries(query ?? {}).map(([name, { required = false, ...schema }]) => ({
    name,
    in: 'query',
    required,
    schema,
  }))
  const csv = { 'text/csv': { schema: { type: 'string' } } }
  return {
    summary,
    ...(query !== undefined && { parameters }),
    ...(body !== undefined && { requestBody: { required: true, content: json(body) } }),
    responses: {
      200: { description: 'Success.', content: { ...json(answer), ...(isCsvToo && csv) } },
      ...Object.fromEntries(rejections),
    },
  }
}

/** Serves the document from which clients are generated. */
export const openApiEndpoint: Endpoint = {
  path: '/v1/openapi.json',
  methods: { GET: reads(() => jsonAnswer(200, OPENAPI_DOCUMENT)) },
}
