import type { HttpRequest } from './http-request.js'
import type { SubjectInput } from './subject.js'

/** A way to find subjects: by address, header, cookie, verified token, or a function of your own. */
export interface SubjectSource {
  /** The subject types it may find; null if only its function knows. */
  readonly types: readonly string[] | null
  /** Finds who is asking; null if this source cannot tell. Never believes an unverified claim. */
  find(request: HttpRequest): Finding | null | Promise<Finding | null>
  /** Settles when it has what it needs, such as a package; rejects if it cannot get it. */
  ready?(): Promise<void>
}

/** The subjects that a source found. */
export interface Finding {
  /** One subject, or several from the most specific to the least. */
  readonly subject: SubjectInput | readonly SubjectInput[]
  /** The caller's tier, if the source knows it. */
  readonly tier?: string | undefined
  /**
   * For subjects that anybody can make up: all of them together get this many times one subject's limits from one
   * address. Left out: the source has verified the subject.
   */
  readonly perAddress?: number | undefined
}

/** Whether a value has to be awaited. Any thenable counts, as for `await`. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | null | undefined)?.then === 'function'
}
