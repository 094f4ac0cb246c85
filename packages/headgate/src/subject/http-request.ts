/** A request as every adapter shows it to whoever wants to know who is asking. Framework types stop before this. */
export interface HttpRequest {
  readonly method: string
  /** The target as it came: a path with its query, or a whole URL. */
  readonly url: string
  /** The address at the other end of the connection; undefined when it is gone, or has none. */
  readonly peer: string | undefined
  /** The pattern that the framework's router has matched; undefined before it has, and where it does not say. */
  readonly route: string | undefined
  /** The value of a header by its name in lower case, several lines joined by commas; undefined when there is none. */
  header(name: string): string | undefined
  /** Every value of the headers that a server behind this one may take for `name`. Left out: `header` tells all. */
  similarHeaders?(name: string): readonly string[]
}
