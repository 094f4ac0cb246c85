import { useState } from 'preact/hooks'

/** Asks for a token of the admin port. */
export function TokenForm({ isWrong, onToken }: { isWrong: boolean; onToken(token: string): void }) {
  const [token, setToken] = useState('')
  return (
    <main class="sign-in">
      <h1>Headgate</h1>
      <form
        onSubmit={event => {
          event.preventDefault()
          if (token !== '') onToken(token)
        }}
      >
        <label>
          Token
          <input
            type="password"
            autocomplete="current-password"
            value={token}
            aria-describedby="token-help"
            aria-invalid={isWrong}
            onInput={event => setToken(event.currentTarget.value.trim())}
          />
        </label>
        <p id="token-help" role={isWrong ? 'alert' : undefined}>
          {isWrong
            ? 'This token is not known here.'
            : 'One with the role read shows the stats; administer changes them.'}
        </p>
        <button type="submit">Sign in</button>
      </form>
    </main>
  )
}
