import type { HeaderField } from 'headgate/internal'
import { type Endpoint, open } from '../admin/endpoint.js'
import type { HttpAnswer } from '../http/problem.js'
import type { PageFile } from './page-files.js'

/** Loads nothing from elsewhere, allows no inline code, and forbids framing. */
const PAGE_HEADERS: readonly HeaderField[] = [
  [
    'Content-Security-Policy',
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
]

/**
 * The dashboard. Its files are the same for everybody and contain no stats, so they need no token; the page asks
 * for one. If tokens are set, the page itself is 401, as everything is for a caller without one.
 */
export function pageEndpoints(files: readonly PageFile[]): readonly Endpoint[] {
  return files.map(({ path, type, text }) => {
    const isPage = path === '/index.html'
    const headers: readonly HeaderField[] = [
      ['Content-Type', type],
      // The names of the other files change with their contents.
      ['Cache-Control', isPage ? 'no-cache' : 'public, max-age=31536000, immutable'],
      ...PAGE_HEADERS,
    ]
    const answer = open(
      (_req, caller): HttpAnswer => ({ status: isPage && caller === null ? 401 : 200, headers, body: text }),
    )
    return { path: isPage ? '/' : path, methods: { GET: answer, HEAD: answer } }
  })
}
