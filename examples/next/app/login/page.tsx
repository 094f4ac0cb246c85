'use client'

import { useActionState } from 'react'
import { login } from './actions'

export default function Page() {
  const [message, send] = useActionState(login, '')
  return (
    <form action={send}>
      <input name="name" defaultValue="you" />
      <button type="submit">Log in</button>
      <output>{typeof message === 'string' ? message : message.detail}</output>
    </form>
  )
}
