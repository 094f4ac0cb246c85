import type { FrameworkTrust } from './client-address.js'

/**
 * The one form in which every adapter shows a request to the code that identifies callers. Framework types stop
 * here.
 */
export interface HttpRequest {
  readonly method: string
  /** The target as received: a path with its query, or a whole URL. */
  readonly url: string
  /**
   * The address at the other end of the connection; undefined if the connection is closed or has no address.
   */
  readonly peer: string | undefined
  /** Whom the framework trusts to name the client; undefined if it has no setting for it, or an unset one. */
  readonly trust?: FrameworkTrust | undefined
  /**
   * The pattern the framework's router matched; undefined before routing, and in frameworks that do not expose
   * it.
   */
  readonly route: string | undefined
  /** Its id, if something in front of the limiter has given it one. */
  readonly id?: string
  /** Aborted when the client leaves. Read only for a request that has to wait. */
  readonly signal?: AbortSignal | undefined
  /** Returns a header by its lower-case name, several lines joined by commas; undefined if it is missing. */
  header(name: string): string | undefined
  /**
   * Returns every value of the headers that a server behind this one may take for `name`. Optional: without it,
   * `header` alone is used.
   */
  similarHeaders?(name: string): readonly string[]
}
