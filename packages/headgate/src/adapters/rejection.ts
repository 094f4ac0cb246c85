import type { Decision } from '../decision/decision.js'
import { decisionHeaders, type HeaderField, type HeaderOptions } from '../decision/headers.js'
import { decisionProblem } from '../decision/problem.js'

/** The complete answer to a rejected request. */
export interface Rejection {
  readonly status: 429 | 503
  readonly headers: readonly HeaderField[]
  readonly body: string
  /** A sentence that says which limit was exceeded and when to come back. */
  readonly detail: string
}

/** The body of a rejection that replaces the default one. */
export interface OwnBody {
  readonly body: string
  readonly contentType: string
}

/**
 * Returns the answer to a denied request: `own`, a page for a browser that asks for one, or
 * `application/problem+json`.
 */
export function rejectionOf(
  decision: Decision,
  options: HeaderOptions,
  accept: string | undefined,
  own: OwnBody | null,
): Rejection {
  const { status, headers, body } = decisionProblem(decision, options)
  const decided = decisionHeaders(decision, options)
  const { detail } = body
  const page = own ?? (wantsPage(accept) ? htmlPage(status, body.title, detail) : null)
  if (page === null)
    return { status, headers: [...decided, ...headers], body: `${JSON.stringify(body)}\n`, detail }
  const about = headers.map(
    ([name, value]): HeaderField => [name, name === 'Content-Type' ? page.contentType : value],
  )
  return { status, headers: [...decided, ...about], body: page.body, detail }
}

/** Programs that accept anything, or JSON as well, are better served by the problem. */
function wantsPage(accept: string | undefined): boolean {
  return accept?.includes('text/html') === true && !accept.includes('json')
}

function htmlPage(status: number, title: string, detail: string): OwnBody {
  const [heading, text] = [title, detail].map(escapeHtml)
  return {
    contentType: 'text/html; charset=utf-8',
    body: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${status} ${heading}</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { margin: 0; min-height: 100vh; display: grid; place-content: center }
main { max-width: 32rem; padding: 2rem }
h1 { margin: 0 0 .5rem; font-size: 1.75rem; line-height: 1.2 }
p { margin: 0 }
small { opacity: .6; letter-spacing: .05em }
</style>
<main>
<small>${status}</small>
<h1>${heading}</h1>
<p>${text}</p>
</main>
</html>
`,
  }
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, character => ENTITIES[character] as string)
}
