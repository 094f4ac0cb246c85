import type { HttpRequest } from '../subject/http-request.js'

/** Shows a `Request` to the core. `url` overrides the request's own target. */
export class FetchRequest implements HttpRequest {
  readonly peer = undefined
  readonly route = undefined

  constructor(
    private readonly request: Request,
    readonly url: string = request.url,
  ) {}

  get method(): string {
    return this.request.method
  }

  header(name: string): string | undefined {
    return this.request.headers.get(name) ?? undefined
  }
}
