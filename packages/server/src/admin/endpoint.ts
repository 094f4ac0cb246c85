/** An endpoint of the admin port: its path, its methods, and the role each of them needs. */
import type { IncomingMessage } from 'node:http'
import type { Mistake } from 'headgate/internal'
import { mistakeText } from 'headgate/internal'
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'
import type { Fields } from './body-fields.js'

/** A role lets its caller ask for decisions, read stats, or do everything. */
export type Role = 'check' | 'read' | 'administer'

export const ROLES: readonly Role[] = ['check', 'read', 'administer']

/** The caller, as named in the audit trail. */
export interface Caller {
  /** The name of the token; null if no tokens are set and this machine is trusted. */
  readonly name: string | null
  readonly role: Role
}

/** Whether the caller's role includes this one. */
export function may({ role }: Caller, needed: Role): boolean {
  return role === 'administer' || role === needed
}

export type Answerer = (req: IncomingMessage, caller: Caller) => Promise<HttpAnswer> | HttpAnswer
/** `caller` is null if no token was sent. */
export type OpenAnswerer = (req: IncomingMessage, caller: Caller | null) => Promise<HttpAnswer> | HttpAnswer

/** A method of an endpoint: made by `checks`, `reads`, `administers` or `open`. */
export type Method =
  | { readonly needs: Role; readonly answer: Answerer }
  | { readonly needs: null; readonly answer: OpenAnswerer }

/** A path, and what each of its methods answers. */
export interface Endpoint {
  readonly path: string
  /**
   * Whether its callers pass on the headers of somebody else's request. None of those speaks for the caller: its
   * token is in `Headgate-Token`, and the origin of a page's request does not matter.
   */
  readonly isRelay?: boolean
  readonly methods: Readonly<Record<string, Method>>
}

/** A method that decides for a caller, and may charge. */
export function checks(answer: Answerer): Method {
  return { needs: 'check', answer }
}

/** A method that shows something, and changes nothing. */
export function reads(answer: Answerer): Method {
  return { needs: 'read', answer }
}

/** A method that changes something for others. */
export function administers(answer: Answerer): Method {
  return { needs: 'administer', answer }
}

/** `GET /v1/me`: the caller, so that the dashboard shows only what its role may use. */
export const meEndpoint: Endpoint = {
  path: '/v1/me',
  methods: { GET: reads((_req, { name, role }) => jsonAnswer(200, { name, role })) },
}

/** A method that answers everybody. */
export function open(answer: OpenAnswerer): Method {
  return { needs: null, answer }
}

/** Signs a change with the token's name; the caller may add on whose behalf: `ada (ci)`. */
export function signed(fields: Fields, { name }: Caller): Fields {
  if (name === null) return fields
  const { by = name } = fields
  return { ...fields, by: typeof by === 'string' && by !== name ? `${by} (${name})` : by }
}

/** A request to the decision API that cannot be answered with a decision, and what is wrong with it. */
export class RequestError extends Error {
  readonly status: number
  readonly mistake: Mistake

  constructor(status: number, mistake: Mistake) {
    super(mistakeText(mistake))
    this.name = 'RequestError'
    this.status = status
    this.mistake = mistake
  }
}

/**
 * Carried by every answer of the decision API, so that a client can distinguish the API from anything else on the
 * port.
 */
export const API_HEADER = 'Headgate-Api'
export const API_VERSION = 'v1'
