/** The shapes that the decision API accepts and returns, as JSON Schema 2020-12. */

import { MAX_UNITS } from 'headgate/internal'

type Schema = Readonly<Record<string, unknown>>

const text = { type: 'string', minLength: 1 }
const units = { type: 'integer', minimum: 0, maximum: MAX_UNITS }
const orNull = (type: string): Schema => ({ type: [type, 'null'] })
const waitMs = { ...orNull('number'), description: '0: now. null: waiting does not help.' }

export function ref(name: keyof typeof SCHEMAS): Schema {
  return { $ref: `#/components/schemas/${name}` }
}

/** An object whose fields are all required except those named as optional. */
function object(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter(name => !optional.includes(name))
  return { type: 'object', properties, required, additionalProperties: false }
}

const Subject = {
  description: 'Who is asking: "user:42", or its parts.',
  anyOf: [{ type: 'string', pattern: '^[^:]+:[^]+$' }, object({ type: text, id: text })],
}

/** By name: a policy or a tier of the file. */
const NamedCheck = {
  ...object(
    {
      subject: { $ref: '#/components/schemas/Subject' },
      policy: { ...text, description: 'A policy of the file; or a tier instead.' },
      tier: { ...text, description: 'A tier of the file; or a policy instead.' },
      scope: { ...text, default: 'global', description: 'Each scope has its own budget.' },
      cost: { ...units, default: 1 },
      refundable: {
        type: 'boolean',
        default: false,
        description: 'Whether to return a reference for a refund.',
      },
    },
    ['policy', 'tier', 'scope', 'cost', 'refundable'],
  ),
  oneOf: [{ required: ['policy'] }, { required: ['tier'] }],
}

/** By the rules: what is known of a request. */
const RequestCheck = {
  ...object(
    {
      subject: {
        description: 'One subject, or several from the most specific to the least.',
        anyOf: [
          { $ref: '#/components/schemas/Subject' },
          { type: 'array', items: { $ref: '#/components/schemas/Subject' }, minItems: 1, maxItems: 16 },
        ],
      },
      method: text,
      path: { ...text, description: "The request's target as it came: a path, with its query or without." },
      claimedMethods: {
        type: 'array',
        items: text,
        maxItems: 16,
        description: 'Methods that headers claim. Those in the query are found automatically.',
      },
      tier: { ...text, description: "The caller's tier, where a session or a key has told it." },
      scope: text,
      cost: { ...units, description: 'Default: as the rules say.' },
      refundable: { type: 'boolean', default: false },
    },
    ['method', 'path', 'claimedMethods', 'tier', 'scope', 'cost', 'refundable'],
  ),
  anyOf: [{ required: ['method'] }, { required: ['path'] }, { properties: { subject: { type: 'array' } } }],
}

const Verdict = object({
  name: text,
  allowed: { type: 'boolean' },
  limit: { type: 'number' },
  remaining: { type: 'number' },
  retryAfterMs: waitMs,
  resetAfterMs: { type: 'number' },
  quota: object({ limit: { type: 'number' }, windowUs: { type: 'number' }, burst: orNull('number') }),
})

const Decision = object(
  {
    allowed: { type: 'boolean' },
    limit: { ...orNull('number'), description: 'null: nothing limits this caller.' },
    remaining: orNull('number'),
    resetAt: { type: 'number', description: 'Unix time in milliseconds.' },
    resetAfterMs: { type: 'number' },
    retryAfterMs: waitMs,
    cost: units,
    policy: { type: 'string' },
    tier: orNull('string'),
    rule: orNull('string'),
    source: {
      enum: ['redis', 'memory', 'local', 'open', 'closed', 'none'],
      description: 'Who decided; none if nothing limits the request.',
    },
    leased: { type: 'boolean' },
    waitedMs: { type: 'integer', minimum: 0, description: 'How long it was held; always 0 here.' },
    reason: {
      enum: [
        'within-limit',
        'limit-exceeded',
        'exceeds-capacity',
        'unlimited',
        'disabled',
        'paused',
        'skipped',
        'shadow',
        'banned',
        'store-unavailable',
      ],
    },
    binding: { anyOf: [{ $ref: '#/components/schemas/Verdict' }, { type: 'null' }] },
    verdicts: { type: 'array', items: { $ref: '#/components/schemas/Verdict' } },
    shadow: { type: 'array', items: { $ref: '#/components/schemas/Verdict' } },
    status: { enum: [200, 429, 503], description: 'The status to answer the client with.' },
    headers: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Copy these to the response.',
    },
    reference: {
      ...text,
      description:
        'For /v1/refund, where `refundable` asked for it; for /v1/release, where a permit was taken.',
    },
  },
  ['reference'],
)

const InspectedLimit = object({
  rule: { type: 'string' },
  name: text,
  scope: text,
  subject: text,
  algorithm: text,
  limit: { type: 'number' },
  used: { type: 'number' },
  remaining: { type: 'number' },
  retryAfterMs: waitMs,
  resetAfterMs: { type: 'number' },
  ban: {
    anyOf: [
      object({
        level: { type: 'integer', minimum: 0, description: 'The step it is at, or was at last; 0 if none.' },
        stepsMs: { type: 'array', items: { type: 'number' }, description: 'How long each ban lasts.' },
        strikes: { type: 'integer', minimum: 0, description: 'Denials since.' },
        bannedForMs: { type: 'number', description: 'How long the ban still lasts; 0 if none does.' },
      }),
      { type: 'null' },
    ],
    description: 'How the subject stands with a ban that grows; null for any other limit.',
  },
  key: { ...orNull('string'), description: 'The key in Redis.' },
  text: { type: 'string' },
})

const Problem = {
  type: 'object',
  description: 'RFC 9457.',
  properties: {
    type: text,
    title: text,
    status: { type: 'integer' },
    detail: { type: 'string' },
    field: { type: 'string', description: 'The part of the request that is wrong.' },
    expected: { type: 'string', description: 'What it should be.' },
    got: { type: 'string', description: 'What came.' },
    suggestion: { type: 'string', description: 'The known name that was probably meant.' },
  },
  required: ['type', 'title', 'status', 'detail'],
}

const UsageRow = object({
  id: { ...text, description: 'The same for a caller, quota, scope and period: by it, count a row once.' },
  subject: text,
  policy: text,
  quota: text,
  scope: text,
  startsAt: text,
  endsAt: text,
  used: units,
  paidWithCredits: units,
  overage: units,
})

export const SCHEMAS = {
  Subject,
  NamedCheck,
  RequestCheck,
  Check: {
    anyOf: [{ $ref: '#/components/schemas/NamedCheck' }, { $ref: '#/components/schemas/RequestCheck' }],
  },
  Checks: object({
    checks: { type: 'array', items: { $ref: '#/components/schemas/Check' }, minItems: 1, maxItems: 1_000 },
  }),
  Verdict,
  Decision,
  Decisions: object({ decisions: { type: 'array', items: { $ref: '#/components/schemas/Decision' } } }),
  Refund: object({ reference: text, units: { ...units, minimum: 1 } }, ['units']),
  Refunded: object({ refunded: units }),
  Release: object({ reference: text }),
  Reset: object(
    { subject: { $ref: '#/components/schemas/Subject' }, policy: text, tier: text, scope: text },
    ['policy', 'tier', 'scope'],
  ),
  Credit: object(
    {
      subject: { $ref: '#/components/schemas/Subject' },
      units: { type: 'integer', minimum: 1 },
      id: text,
      expires: { enum: ['never', 'period'] },
      policy: text,
      tier: text,
      scope: text,
    },
    ['expires', 'policy', 'tier', 'scope'],
  ),
  UsagePage: object({
    rows: { type: 'array', items: UsageRow },
    next: orNull('string'),
    leftOut: { type: 'integer' },
  }),
  QuotaUsage: {
    type: 'object',
    required: ['policy', 'quota', 'limit', 'used', 'remaining', 'credits', 'endsAt'],
  },
  Inspect: object({ subject: { $ref: '#/components/schemas/Subject' }, tier: text, scope: text }, [
    'tier',
    'scope',
  ]),
  InspectedLimit,
  Inspection: object({
    subject: text,
    tier: orNull('string'),
    limits: { type: 'array', items: { $ref: '#/components/schemas/InspectedLimit' } },
    truncated: { type: 'boolean' },
    text: { type: 'string' },
  }),
  Control: object({ enabled: { type: 'boolean' }, multiplier: { type: 'number', minimum: 0 } }),
  ControlChange: object({ enabled: { type: 'boolean' }, multiplier: { type: 'number', minimum: 0 } }, [
    'enabled',
    'multiplier',
  ]),
  Override: { type: 'object', required: ['by', 'reason', 'setAt', 'expiresAt'] },
  OverrideEffect: {
    type: 'object',
    required: ['changes', 'unchanged'],
    additionalProperties: false,
    properties: {
      changes: {
        type: 'array',
        items: { type: 'object', required: ['rule', 'policy', 'tier', 'now', 'after'] },
      },
      unchanged: { type: 'array', items: { type: 'string' } },
    },
  },
  OverrideChange: { type: 'object', required: ['ttl', 'reason'] },
  Problem,
} satisfies Readonly<Record<string, Schema>>
