// Twenty pages a minute for each address. Files and what Next.js has built pass, and so does the API: its handlers have
// limits of their own, and a response can only carry the headers of one.
import { isStaticAsset, rateLimit } from 'headgate/next'
import { limiter, subject } from './lib/limits'

export const proxy = rateLimit({
  limiter,
  policy: 'pages',
  subject,
  skip: request => isStaticAsset(request) || request.nextUrl.pathname.startsWith('/api/'),
})
