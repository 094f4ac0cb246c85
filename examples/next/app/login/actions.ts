'use server'

import { limitAction } from 'headgate/next'
import { limiter, subject } from '../../lib/limits'

async function checkPassword(_state: unknown, form: FormData) {
  return `welcome, ${form.get('name')}`
}

export const login = limitAction(checkPassword, {
  limiter,
  policy: 'login',
  subject,
  body: ({ retryAfterMs }) => `too many attempts: try again in ${Math.ceil((retryAfterMs ?? 0) / 1000)} s`,
})
