/** One subject, by its name or by the handle that stands for it where names are not shown. */
import type { IncomingMessage } from 'node:http'
import type { Ask, Gate, InspectedLimit, OverrideOptions, SubjectInput } from 'headgate'
import { printable } from 'headgate/config'
import { handleOf, isHandle } from 'headgate/statistics'
import { administers, type Endpoint, reads } from '../admin/endpoint.js'
import { RequestError } from '../admin/request-error.js'
import { jsonAnswer } from '../http/problem.js'
import { readFields, readObject, signed } from '../operators/operator-endpoints.js'
import type { Figures } from './figures.js'

const PATH = /^\/v1\/subjects\/([^/?]+)(?:\/(reset|override))?(?:\?|$)/
const SHOWN_VIOLATIONS = 20

export function subjectEndpoints(gate: Gate, figures: Figures): readonly Endpoint[] {
  /** Reads the subject in a path. Throws where the path is not for `action`. */
  function subjectOf(req: IncomingMessage, action: 'reset' | 'override' | undefined): SubjectInput {
    const [, name, asked] = PATH.exec(req.url ?? '') ?? []
    if (name === undefined || asked !== action) {
      const expected = `/v1/subjects/<subject>${action === undefined ? '' : `/${action}`}`
      throw new RequestError(404, 'path', `expected ${expected}`)
    }
    const text = decoded(name)
    const subject = figures.subjectOf(text)
    if (subject !== null) return subject as SubjectInput
    throw new RequestError(404, 'subject', `no subject of handle ${text} has been denied lately`)
  }

  /** Where the subject is masked, the key and the words do not name it either. */
  function shownLimit(limit: InspectedLimit): InspectedLimit {
    const subject = figures.show(limit.subject)
    return { ...limit, subject, key: null, text: limit.text.replaceAll(printable(limit.subject), subject) }
  }

  async function inspect(req: IncomingMessage) {
    const { subject, text, ...inspection } = await gate.inspect(subjectOf(req, undefined))
    const handle = handleOf(subject)
    const override = gate.overrides.list().find(one => 'subject' in one && one.subject === subject) ?? null
    return jsonAnswer(200, {
      ...{ subject: figures.show(subject), handle },
      ...inspection,
      limits: inspection.limits.map(shownLimit),
      override: override === null ? null : { ...override, subject: figures.show(subject) },
      violations: figures.violations({
        ...{ limit: SHOWN_VIOLATIONS, policy: null, tier: null, reference: handle },
      }),
    })
  }

  return [
    {
      path: '/v1/subjects/*',
      methods: {
        GET: reads(inspect),
        POST: administers(async req => {
          const subject = subjectOf(req, 'reset')
          const ask = await readFields(req, ['policy', 'tier', 'scope'])
          await gate.reset(subject, Object.keys(ask).length === 0 ? undefined : (ask as Ask<string, string>))
          return { ...jsonAnswer(200, { reset: true }), change: `reset ${figures.show(subject as string)}` }
        }),
        PUT: administers(async (req, caller) => {
          const subject = subjectOf(req, 'override')
          const asked = { ...signed(await readObject(req), caller), subject } as Readonly<
            Record<string, unknown>
          >
          await gate.overrides.set(asked as unknown as OverrideOptions)
          const shown = figures.show(subject as string)
          const change = `set an override of ${shown} for ${asked.ttl}: ${asked.reason}`
          return { ...jsonAnswer(200, { override: { ...asked, subject: shown } }), change }
        }),
        DELETE: administers(async req => {
          const subject = subjectOf(req, 'override')
          const removed = await gate.overrides.remove({ subject: subject as string })
          const change = `removed the override of ${figures.show(subject as string)}`
          return { ...jsonAnswer(200, { removed }), ...(removed && { change }) }
        }),
      },
    },
  ]
}

function decoded(text: string): string {
  try {
    const name = decodeURIComponent(text)
    if (isHandle(name) || name.indexOf(':') > 0) return name
  } catch {
    // Said below.
  }
  throw new RequestError(400, 'subject', 'expected a handle of twelve characters, or type:id percent-encoded')
}
