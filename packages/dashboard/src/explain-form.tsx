import { useState } from 'preact/hooks'
import { sendJson } from './api.js'
import { useAction } from './use-action.js'

/** Says in words which rule a typed request meets. Charges nothing. */
export function ExplainForm() {
  const [line, setLine] = useState('GET /')
  const [subject, setSubject] = useState('ip:192.0.2.1')
  const [text, setText] = useState('')
  const action = useAction()
  const explain = (): Promise<boolean> =>
    action.run(async () => {
      const [method, path] = line.trim().split(/\s+/)
      const subjects = subject.trim().split(/\s+/)
      const explanation = await sendJson<{ text: string }>('POST', 'v1/explain', {
        method,
        path,
        subject: subjects,
      })
      setText(explanation.text)
    })
  return (
    <section class="panel">
      <h3>Which rule speaks for a request</h3>
      <form
        onSubmit={event => {
          event.preventDefault()
          void explain()
        }}
      >
        <label>
          Request
          <input required value={line} onInput={event => setLine(event.currentTarget.value)} />
        </label>
        <label>
          Who asks
          <input required value={subject} onInput={event => setSubject(event.currentTarget.value)} />
        </label>
        <button type="submit" disabled={action.isBusy}>
          Explain
        </button>
      </form>
      {action.error !== null && (
        <p role="alert" class="bad">
          {action.error}
        </p>
      )}
      {text !== '' && (
        // Scrollable, so it must be reachable by keyboard.
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus to be scrolled by keys
        <pre tabIndex={0} aria-live="polite">
          {text}
        </pre>
      )}
    </section>
  )
}
