import type { HttpRequest } from './http-request.js'
import type { SubjectInput } from './subject.js'

/** Where a subject comes from: an address, a header, a cookie, a verified token, or a function of your own. */
export interface SubjectSource {
  /** The types of the subjects it may find; null where only its function knows. */
  readonly types: readonly string[] | null
  /** Finds who is asking, as far as this source can tell; null where it cannot. It never believes a mere claim. */
  find(request: HttpRequest): Finding | null | Promise<Finding | null>
  /** Settles when it has what it needs, such as a package; rejects when it cannot have it. */
  ready?(): Promise<void>
}

/** The result of a source. */
export interface Finding {
  /** One subject, or several from the most specific to the least. */
  readonly subject: SubjectInput | readonly SubjectInput[]
  /** The caller's tier, where the source knows it. */
  readonly tier?: string | undefined
}

/** Whether there is something to wait for; any thenable counts, as for `await`. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | null | undefined)?.then === 'function'
}
