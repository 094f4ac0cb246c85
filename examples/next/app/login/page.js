'use client'

import { useActionState } from 'react'
import { login } from './actions.js'

export default function Page() {
  const [message, send] = useActionState(login, '')
  return (
    <form action={send}>
      <input name="name" defaultValue="you" />
      <button type="submit">Log in</button>
      <output>{message}</output>
    </form>
  )
}
