import type { NextRequest } from 'next/server.js'

/** Extensions of static files. `.rsc`, `.json` and the like are missing on purpose: those are pages and data. */
const FILE =
  /\.(?:avif|css|eot|gif|ico|jpe?g|js|map|mjs|mp[34]|otf|png|svg|ttf|txt|webm|webmanifest|webp|woff2?|xml)$/i

/** Whether a request is for a static asset: a build output of Next.js, or a path with a file's extension. */
export function isStaticAsset({ method, nextUrl: { pathname } }: NextRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (pathname.startsWith('/_next/')) return !pathname.startsWith('/_next/data/')
  return FILE.test(pathname)
}
