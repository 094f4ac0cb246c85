/** What operators may see and change over HTTP: the fleet's switches, overrides, and which rule speaks for a request. */
import type { IncomingMessage } from 'node:http'
import type { Gate, OverrideOptions, RequestFacts } from 'headgate'
import { readJson } from '../decision-api/read-json.js'
import { RequestError } from '../decision-api/request-error.js'
import { type Answer, jsonAnswer } from '../http/problem.js'

export type Answerer = (req: IncomingMessage) => Promise<Answer> | Answer

/** A path and what each of its methods answers. */
export interface OperatorEndpoint {
  readonly path: string
  readonly methods: Readonly<Record<string, Answerer>>
}

type Fields = Readonly<Record<string, unknown>>

export function operatorEndpoints(gate: Gate): readonly OperatorEndpoint[] {
  const control = () => jsonAnswer(200, gate.control.get())
  const overrides = () => jsonAnswer(200, { overrides: gate.overrides.list() })
  return [
    {
      path: '/v1/control',
      methods: {
        GET: control,
        async PATCH(req) {
          await gate.control.set(await readFields(req, ['enabled', 'multiplier']))
          return control()
        },
      },
    },
    {
      path: '/v1/overrides',
      methods: {
        GET: overrides,
        async PUT(req) {
          // The gate checks every field and names the bad one; the types cannot.
          await gate.overrides.set((await readObject(req)) as unknown as OverrideOptions)
          return overrides()
        },
        async DELETE(req) {
          const removed = await gate.overrides.remove(targetOf(await readFields(req, ['subject', 'rule'])))
          return jsonAnswer(200, { removed })
        },
      },
    },
    {
      path: '/v1/explain',
      methods: {
        async POST(req) {
          const facts = await readFields(req, ['subject', 'method', 'path', 'tier', 'scope', 'cost'])
          refuseNonText(facts, ['method', 'path', 'tier', 'scope'])
          return jsonAnswer(200, gate.explain(facts as unknown as RequestFacts))
        },
      },
    },
    { path: '/v1/counts', methods: { GET: () => jsonAnswer(200, gate.counts()) } },
  ]
}

async function readObject(req: IncomingMessage): Promise<Fields> {
  const body = await readJson(req)
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Fields
  throw new RequestError(400, 'body', 'expected a JSON object')
}

async function readFields(req: IncomingMessage, known: readonly string[]): Promise<Fields> {
  const fields = await readObject(req)
  const unknown = Object.keys(fields).find(key => !known.includes(key))
  if (unknown === undefined) return fields
  throw new RequestError(400, unknown.slice(0, 40), `expected one of ${known.join(', ')}`)
}

function refuseNonText(fields: Fields, names: readonly string[]): void {
  const bad = names.find(name => fields[name] !== undefined && typeof fields[name] !== 'string')
  if (bad !== undefined) throw new RequestError(400, bad, 'expected a string')
}

function targetOf({ subject, rule }: Fields): { subject: string } | { rule: string } {
  if (typeof subject === 'string' && rule === undefined) return { subject }
  if (typeof rule === 'string' && subject === undefined) return { rule }
  throw new RequestError(400, 'subject', 'expected either a subject or a rule, as a string')
}
