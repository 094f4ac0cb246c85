/**
 * Lets operators see and change the fleet's switches and overrides over HTTP, and explains which rule applies to a
 * request.
 */
import type { OverrideOptions, RequestFacts, RuleLimiter, SubjectInput } from 'headgate'
import { mistakeAt, shownName } from 'headgate/config'
import type { Fields } from '../admin/body-fields.js'
import { administers, type Endpoint, RequestError, reads, signed } from '../admin/endpoint.js'
import { readFields, readObject } from '../admin/read-body.js'
import { jsonAnswer } from '../http/problem.js'

export function operatorEndpoints(limiter: RuleLimiter): readonly Endpoint[] {
  const control: Endpoint = {
    path: '/v1/control',
    methods: {
      GET: reads(async () => jsonAnswer(200, await limiter.control.read())),
      PATCH: administers(async req => {
        await limiter.control.set(await readFields(req, ['enabled', 'multiplier']))
        const { enabled, multiplier } = limiter.control.get()
        const change = `set control: limits ${enabled ? 'on' : 'off'}, multiplier ${multiplier}`
        return { ...jsonAnswer(200, limiter.control.get()), change }
      }),
    },
  }
  const overrides: Endpoint = {
    path: '/v1/overrides',
    methods: {
      GET: reads(async () => jsonAnswer(200, { overrides: await limiter.overrides.read() })),
      PUT: administers(async (req, caller) => {
        // The limiter validates every field and names the bad one; the types cannot.
        const asked = signed(await readObject(req), caller)
        rejectNonText(asked, ['subject', 'rule'])
        await limiter.overrides.set(asked as unknown as OverrideOptions)
        // It is set: failing to read the others now must not look like a failure.
        const overrides = await limiter.overrides.read().catch(() => limiter.overrides.list())
        return {
          ...jsonAnswer(200, { overrides }),
          change: `set an override of ${targetWords(limiter, asked)} for ${asked.ttl}: ${asked.reason}`,
        }
      }),
      DELETE: administers(async req => {
        const target = targetOf(await readFields(req, ['subject', 'rule']))
        const removed = await limiter.overrides.remove(target)
        const change = `removed the override of ${targetWords(limiter, target)}`
        return { ...jsonAnswer(200, { removed }), ...(removed && { change }) }
      }),
    },
  }
  const explain: Endpoint = {
    path: '/v1/explain',
    methods: {
      POST: reads(async req => {
        const facts = await readFields(req, ['subject', 'method', 'path', 'tier', 'scope', 'cost'])
        rejectNonText(facts, ['method', 'path', 'tier', 'scope'])
        return jsonAnswer(200, limiter.explain(facts as unknown as RequestFacts))
      }),
    },
  }
  const counts: Endpoint = {
    path: '/v1/counts',
    methods: { GET: reads(() => jsonAnswer(200, limiter.counts())) },
  }
  return [control, overrides, explain, counts]
}

function rejectNonText(fields: Fields, names: readonly string[]): void {
  const bad = names.find(name => {
    const value = fields[name]
    return value !== undefined && (typeof value !== 'string' || value === '')
  })
  if (bad !== undefined) {
    throw new RequestError(400, mistakeAt(bad, 'a non-empty string', fields[bad]))
  }
}

/** Describes whose override it is. Ids of secrets are not shown. */
function targetWords(limiter: RuleLimiter, { subject, rule }: Fields): string {
  return shownName(typeof subject === 'string' ? limiter.nameOf(subject as SubjectInput) : `rule ${rule}`)
}

function targetOf({ subject, rule }: Fields): { subject: string } | { rule: string } {
  if (typeof subject === 'string' && rule === undefined) return { subject }
  if (typeof rule === 'string' && subject === undefined) return { rule }
  throw new RequestError(400, { field: 'subject', expected: 'either a subject or a rule, as a string' })
}
