/**
 * Lets operators see and change the fleet's switches and overrides over HTTP, and explains which rule applies to a
 * request.
 */

import {
  type Control,
  isHeadgateError,
  type RequestFacts,
  type RuleLimiter,
  type SubjectInput,
} from 'headgate'
import type { OverrideEffect, OverrideOptions, OverrideTarget } from 'headgate/internal'
import { isReference, mistakeAt, shownName } from 'headgate/internal'
import type { Fields } from '../admin/body-fields.js'
import { administers, type Endpoint, RequestError, reads, signed } from '../admin/endpoint.js'
import { isStoreFailure } from '../admin/failure-answer.js'
import { readFields, readObject } from '../admin/read-body.js'
import { jsonAnswer } from '../http/problem.js'

/** What a preview need not say. */
const UNSAID = { ttl: '1h', by: 'preview', reason: 'preview' }

export function operatorEndpoints(
  limiter: RuleLimiter,
  /** Returns the stored name of the subject behind a reference; null if it is not known. */
  subjectOf: (reference: string) => string | null,
  /** Changes the switches of this server's processes alone. */
  setControlHere: (change: Partial<Control>) => void,
): readonly Endpoint[] {
  /** Puts the subject that a reference stands for in its place. */
  function resolved(fields: Fields): Fields {
    rejectNonText(fields, ['subject', 'rule', 'policy'])
    const { subject } = fields
    if (typeof subject !== 'string' || !isReference(subject)) return fields
    const stored = subjectOf(subject)
    if (stored !== null) return { ...fields, subject: { stored } }
    const expected = 'type:id, or the reference of a subject that has been denied lately'
    throw new RequestError(404, { field: 'subject', expected, got: subject })
  }

  /** The limiter validates every field and names the bad one; the types cannot. */
  function preview(asked: Fields): OverrideEffect {
    return limiter.overrides.preview(asked as unknown as OverrideOptions)
  }

  const control: Endpoint = {
    path: '/v1/control',
    methods: {
      GET: reads(async () => jsonAnswer(200, await limiter.control.read())),
      PATCH: administers(async req => {
        const asked = (await readFields(req, ['enabled', 'multiplier'])) as Partial<Control>
        const isStored = await limiter.control.set(asked).then(
          () => true,
          error => {
            if (!isHeadgateError(error) || !isStoreFailure(error)) throw error
            // An emergency does not wait for Redis: this server obeys at once, and tells Redis when it is back.
            setControlHere(asked)
            return false
          },
        )
        const { enabled, multiplier } = limiter.control.get()
        const where = isStored ? '' : ', on this server alone until Redis is back'
        const change = `set control: limits ${enabled ? 'on' : 'off'}, multiplier ${multiplier}${where}`
        return {
          ...jsonAnswer(200, { ...limiter.control.get(), ...(!isStored && { appliedTo: 'server' }) }),
          change,
        }
      }),
    },
  }
  const overrides: Endpoint = {
    path: '/v1/overrides',
    methods: {
      GET: reads(async () => jsonAnswer(200, { overrides: await limiter.overrides.read() })),
      PUT: administers(async (req, caller) => {
        const asked = resolved(signed(await readObject(req), caller))
        const effect = preview(asked)
        rejectUnsigned(asked)
        await limiter.overrides.set(asked as unknown as OverrideOptions)
        // It is set: failing to read the others now must not look like a failure.
        const overrides = await limiter.overrides.read().catch(() => limiter.overrides.list())
        return {
          ...jsonAnswer(200, { overrides, effect }),
          change: `set an override of ${targetWords(limiter, asked)} for ${asked.ttl}: ${asked.reason}`,
        }
      }),
      DELETE: administers(async req => {
        const target = resolved(
          await readFields(req, ['subject', 'rule', 'policy', 'ban']),
        ) as unknown as OverrideTarget
        const removed = await limiter.overrides.remove(target)
        const change = `removed the override of ${targetWords(limiter, target)}`
        return { ...jsonAnswer(200, { removed }), ...(removed && { change }) }
      }),
    },
  }
  const previews: Endpoint = {
    path: '/v1/overrides/preview',
    methods: {
      POST: reads(async req => jsonAnswer(200, preview(resolved({ ...UNSAID, ...(await readObject(req)) })))),
    },
  }
  const restore: Endpoint = {
    path: '/v1/restore',
    methods: {
      GET: reads(() => jsonAnswer(200, { lost: limiter.control.lost() })),
      POST: administers(async () => {
        const restored = await limiter.control.restore()
        const change = 'restored what the store had lost'
        return { ...jsonAnswer(200, { restored }), ...(restored !== null && { change }) }
      }),
      DELETE: administers(async () => {
        const cleared = await limiter.control.forget()
        const change = 'cleared what the store had lost'
        return { ...jsonAnswer(200, { cleared }), ...(cleared !== null && { change }) }
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
  return [control, overrides, previews, restore, explain, counts]
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

/** Other operators have to know who it was, and why. */
function rejectUnsigned(fields: Fields): void {
  const missing = ['by', 'reason'].find(name => fields[name] === undefined)
  if (missing === undefined) return
  throw new RequestError(400, mistakeAt(`override ${missing}`, 'a text of 1 to 200 characters', undefined))
}

/** Describes whose override it is. Ids of secrets are not shown. */
function targetWords(limiter: RuleLimiter, { subject, rule, policy }: Fields): string {
  const name = typeof subject === 'string' ? limiter.nameOf(subject as SubjectInput) : storedName(subject)
  return shownName([name, rule && `rule ${rule}`, policy && `policy ${policy}`].filter(Boolean).join(', '))
}

function storedName(subject: unknown): string | null {
  return (subject as { readonly stored: string } | undefined)?.stored ?? null
}
