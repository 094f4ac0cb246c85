import type { HttpRequest } from '../subject/http-request.js'

/** A `Request` as the core sees it. `url` is the target where that is not the request's own. */
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
