/** Finds callers by whatever an operator has of them: a name, an address, a key, a reference, a request id. */
import { isIP } from 'node:net'
import type { Config, RuleLimiter, SubjectInput } from 'headgate'
import { isReference } from 'headgate/internal'
import { bad } from '../admin/body-fields.js'
import { type Endpoint, reads } from '../admin/endpoint.js'
import { readFields } from '../admin/read-body.js'
import { jsonAnswer } from '../http/problem.js'
import type { ShownDenial } from './denial-log.js'
import type { Stats } from './stats.js'

/** A caller that may be meant. */
export interface FoundSubject {
  readonly subject: string
  readonly reference: string
  /** How often it was denied in the last day, as far as denials were kept. */
  readonly denied: number
  readonly lastDenial: ShownDenial | null
  /** Whether any of its limits is in use; null if the store could not be asked. */
  readonly isActive: boolean | null
  readonly overridden: boolean
}

const MAX_LENGTH = 1_024
const MAX_OF_REQUEST = 20
const TYPED = /^[A-Za-z][\w.-]{0,63}:./s
const USUAL_TYPES = ['user', 'apikey', 'tenant', 'session', 'internal']

/** `POST /v1/find`: a body, because what is looked for may be a key, which must be in no address and no log. */
export function findEndpoint(limiter: RuleLimiter, stats: Stats, config: () => Config): Endpoint {
  async function look(stored: string): Promise<FoundSubject> {
    const reference = stats.remember(stored)
    const [lastDenial = null] = stats.denials({ limit: 1, reference })
    return {
      subject: stats.show(stored),
      reference,
      denied: stats.deniedByHour(reference).reduce((sum, count) => sum + count, 0),
      lastDenial,
      isActive: await isActive(limiter, stored),
      overridden: limiter.overrides.list().some(one => 'subject' in one && one.subject === stored),
    }
  }

  async function find(text: string): Promise<readonly FoundSubject[]> {
    const named = namedBy(text, limiter, stats)
    if (named.length > 0) return Promise.all(named.map(look))
    const names = typesOf(config()).map(type => limiter.nameOf({ type, id: text }))
    const found = await Promise.all([...new Set(names)].map(look))
    const known = found.filter(one => one.isActive || one.denied > 0 || one.overridden)
    return known.length > 0 ? known : found
  }

  return {
    path: '/v1/find',
    methods: {
      POST: reads(async req => {
        const { text } = await readFields(req, ['text'])
        if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_LENGTH) {
          throw bad('text', `a text of 1 to ${MAX_LENGTH} characters`, typeof text)
        }
        return jsonAnswer(200, { matches: await find(text.trim()) })
      }),
    },
  }
}

/** Returns the stored names of what the text can only mean. */
function namedBy(text: string, limiter: RuleLimiter, stats: Stats): readonly string[] {
  if (isIP(text) !== 0) return [limiter.nameOf({ type: 'ip', id: text })]
  const byReference = isReference(text) ? stats.subjectOf(text) : null
  if (byReference !== null) return [byReference]
  const byRequest = stats.denials({ limit: MAX_OF_REQUEST, requestId: text })
  const subjects = byRequest.flatMap(({ reference }) => stats.subjectOf(reference) ?? [])
  if (subjects.length > 0) return [...new Set(subjects)]
  return TYPED.test(text) ? [limiter.nameOf(text as SubjectInput)] : []
}

/** The types by which the file names callers, and those that programs usually do. */
function typesOf({ identify, subjects }: Config): readonly string[] {
  const sources = (identify ?? []).map(source =>
    source.source === 'jwt' ? (source.type ?? 'user') : source.source,
  )
  const listed = [...subjects.keys()].map(subject => subject.slice(0, subject.indexOf(':')))
  return [...new Set([...sources, ...listed, ...USUAL_TYPES])]
    .filter(type => type !== 'ip')
    .slice(0, MAX_OF_REQUEST)
}

async function isActive(limiter: RuleLimiter, stored: string): Promise<boolean | null> {
  try {
    const { subject, limits } = await limiter.inspect({ stored })
    return limits.some(limit => limit.subject === subject && limit.used > 0)
  } catch {
    // The store does not answer; what this process knows is shown all the same.
    return null
  }
}
