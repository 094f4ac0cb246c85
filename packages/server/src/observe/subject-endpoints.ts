/** One subject, by its name or by the reference that stands for it where names are hidden. */
import type { IncomingMessage } from 'node:http'
import type { CheckOptions, Inspection, Override, RuleLimiter, SubjectInput } from 'headgate'
import type { InspectedLimit, InspectOptions, OverrideOptions, StoredSubject } from 'headgate/internal'
import { isReference, printable, referenceOf } from 'headgate/internal'
import { administers, type Caller, type Endpoint, RequestError, reads, signed } from '../admin/endpoint.js'
import { readFields } from '../admin/read-body.js'
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'
import type { ShownDenial } from './denial-log.js'
import type { Stats } from './stats.js'

/** A subject as it is shown: its limits, its overrides, and its denials. */
export interface ShownSubject extends Omit<Inspection, 'text'> {
  readonly reference: string
  /** Whether its name can be revealed: part of it is hidden, and it is not a digest. */
  readonly isRevealable: boolean
  /** Those of its own limits, and of its limits on rules. */
  readonly overrides: readonly Override[]
  /** How often it was denied in each of the last 24 hours, the oldest first, as far as denials were kept. */
  readonly deniedByHour: readonly number[]
  readonly denials: readonly ShownDenial[]
}

const PATH = /^\/v1\/subjects\/([^/?]+)(?:\/(reset|ban|reveal))?(?:\?|$)/
/** A stored id that is a digest. */
const DIGEST = /^[^:]*:~/
type Action = 'reset' | 'ban' | 'reveal'
const SHOWN_DENIALS = 100

export function subjectEndpoints(limiter: RuleLimiter, stats: Stats): readonly Endpoint[] {
  /** Reads the subject in a path, by its stored name. Throws if the path is not for `action`. */
  function subjectOf(req: IncomingMessage, action: Action | undefined): StoredSubject {
    const [, name, asked] = PATH.exec(req.url ?? '') ?? []
    if (name === undefined || asked !== action) {
      const expected = `/v1/subjects/<subject>${action === undefined ? '' : `/${action}`}`
      throw new RequestError(404, { field: 'path', expected })
    }
    const text = decoded(name)
    const stored = isReference(text) ? stats.subjectOf(text) : limiter.nameOf(text as SubjectInput)
    if (stored !== null) return { stored }
    throw new RequestError(404, {
      field: 'subject',
      expected: 'the reference of a subject that was denied or looked for lately',
      got: text,
    })
  }

  function isRevealable(stored: string): boolean {
    return stats.show(stored) !== stored && !DIGEST.test(stored)
  }

  /** Of a key or a session nothing but a keyed hash is known, to anybody. */
  function reveal(req: IncomingMessage): HttpAnswer {
    const { stored } = subjectOf(req, 'reveal')
    if (DIGEST.test(stored)) {
      throw new RequestError(409, {
        field: 'subject',
        expected: 'an address or an id: of a key or a session only a keyed hash is kept',
      })
    }
    const change = `revealed the name of ${stats.show(stored)}, reference ${referenceOf(stored)}`
    return { ...jsonAnswer(200, { subject: stored }), change }
  }

  async function reset(req: IncomingMessage): Promise<HttpAnswer> {
    const subject = subjectOf(req, 'reset')
    const ask = await readFields(req, ['policy', 'tier', 'scope'])
    await limiter.reset(
      subject,
      Object.keys(ask).length === 0 ? undefined : (ask as CheckOptions<string, string>),
    )
    return { ...jsonAnswer(200, { reset: true }), change: `reset ${stats.show(subject.stored)}` }
  }

  async function ban(req: IncomingMessage, caller: Caller): Promise<HttpAnswer> {
    const subject = subjectOf(req, 'ban')
    const { ttl, reason, by } = signed(await readFields(req, ['ttl', 'reason', 'by']), caller)
    // The limiter validates every field and names the bad one; the types cannot.
    const override = { subject, ban: true, ttl, reason: reason ?? '', by: by ?? '' }
    await limiter.overrides.set(override as unknown as OverrideOptions)
    const change = `banned ${stats.show(subject.stored)} for ${ttl}: ${reason}`
    return { ...jsonAnswer(200, { banned: true }), change }
  }

  /** If the subject is masked, the key and the words do not name it either. */
  function shownLimit(limit: InspectedLimit): InspectedLimit {
    const subject = stats.show(limit.subject)
    return { ...limit, subject, key: null, text: limit.text.replaceAll(printable(limit.subject), subject) }
  }

  function denialsOf(reference: string): readonly ShownDenial[] {
    return stats.denials({ limit: SHOWN_DENIALS, reference })
  }

  /** Requests tell the tier of their caller; for one who does not ask now, the last denial knows it. */
  function lastTier(reference: string): InspectOptions {
    const tier = denialsOf(reference).find(denial => denial.tier !== null)?.tier ?? null
    return tier !== null && limiter.tierNames.includes(tier) ? { tier } : {}
  }

  async function inspect(req: IncomingMessage) {
    const asked = subjectOf(req, undefined)
    const { subject, text, ...inspection } = await limiter.inspect(asked, lastTier(referenceOf(asked.stored)))
    const reference = referenceOf(subject)
    const overrides = limiter.overrides.list().filter(one => 'subject' in one && one.subject === subject)
    const shown: ShownSubject = {
      subject: stats.show(subject),
      reference,
      isRevealable: isRevealable(subject),
      deniedByHour: stats.deniedByHour(reference),
      ...inspection,
      limits: inspection.limits.map(shownLimit),
      overrides: overrides.map(override => ({ ...override, subject: stats.show(subject) })),
      denials: denialsOf(reference),
    }
    return jsonAnswer(200, shown)
  }

  return [
    {
      path: '/v1/subjects/*',
      methods: {
        GET: reads(inspect),
        POST: administers((req, caller) => {
          const action = PATH.exec(req.url ?? '')?.[2]
          if (action === 'reveal') return reveal(req)
          return action === 'ban' ? ban(req, caller) : reset(req)
        }),
      },
    },
  ]
}

function decoded(text: string): string {
  try {
    const name = decodeURIComponent(text)
    if (isReference(name) || name.indexOf(':') > 0) return name
  } catch {
    // Reported below.
  }
  throw new RequestError(400, {
    field: 'subject',
    expected: 'a reference of twelve characters, or type:id percent-encoded',
  })
}
