import type { NextRequest } from 'next/server.js'

/** Endings of files. `.rsc`, `.json` and the like are not among them: those are pages and data. */
const FILE =
  /\.(?:avif|css|eot|gif|ico|jpe?g|js|map|mjs|mp[34]|otf|png|svg|ttf|txt|webm|webmanifest|webp|woff2?|xml)$/i

/** Whether a request is for something static: what Next.js has built, or a path that ends as a file does. */
export function isStaticAsset({ method, nextUrl: { pathname } }: NextRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (pathname.startsWith('/_next/')) return !pathname.startsWith('/_next/data/')
  return FILE.test(pathname)
}
