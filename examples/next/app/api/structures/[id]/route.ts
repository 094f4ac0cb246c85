// A route handler with its own limit, which applies however a request reaches it.
import { withRateLimit } from 'headgate/next'
import type { NextRequest } from 'next/server'
import { subject } from '../../../../lib/limits'

interface Context {
  readonly params: Promise<{ readonly id: string }>
}

async function getStructure(_request: NextRequest, { params }: Context) {
  return Response.json({ id: (await params).id })
}

export const GET = withRateLimit(getStructure, {
  limit: 5,
  window: 60,
  scope: 'pdb-fetch',
  tier: 'per-endpoint',
  subject,
})
