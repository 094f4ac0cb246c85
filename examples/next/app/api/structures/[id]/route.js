// A route handler with its own limit, which applies however a request reaches it.
import { withRateLimit } from 'headgate/next'
import { subject } from '../../../../lib/limits.js'

export const GET = withRateLimit(async (_request, { params }) => Response.json({ id: (await params).id }), {
  limit: 5,
  window: 60,
  scope: 'pdb-fetch',
  tier: 'per-endpoint',
  subject,
})
