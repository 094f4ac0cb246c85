import { useState } from 'preact/hooks'
import { sendJson } from './api.js'
import { Field } from './field.js'
import { FormPanel } from './form-panel.js'

/** Says in words which rule a typed request meets. Charges nothing. */
export function ExplainForm() {
  const [line, setLine] = useState('GET /')
  const [subject, setSubject] = useState('ip:192.0.2.1')
  const [text, setText] = useState('')
  const explain = async (): Promise<void> => {
    const [method, path] = line.trim().split(/\s+/)
    const asked = { method, path, subject: subject.trim().split(/\s+/) }
    setText((await sendJson<{ text: string }>('POST', 'v1/explain', asked)).text)
  }
  return (
    <FormPanel
      title="Which rule applies to a request"
      hint="Looks only: nothing is asked of the store, and nothing is charged."
      submit="Explain"
      onSubmit={explain}
      result={
        text !== '' && (
          // Scrollable, so it must be reachable by keyboard.
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus to be scrolled by keys
          <pre tabIndex={0}>{text}</pre>
        )
      }
    >
      <Field label="Request" value={line} onValue={setLine} />
      <Field label="Who asks, the most specific first" value={subject} onValue={setSubject} />
    </FormPanel>
  )
}
