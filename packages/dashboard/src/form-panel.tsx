import type { ComponentChildren } from 'preact'
import { useAction } from './use-action.js'

export interface FormPanelProps {
  readonly title: string
  /** A sentence for first-time users. */
  readonly hint: string
  /** The label of the button. */
  readonly submit: string
  /** The fields. */
  readonly children: ComponentChildren
  /** Shown below the form, when there is one. */
  readonly result: ComponentChildren
  /** Asks the server. The panel shows a failure. */
  onSubmit(): Promise<void>
}

/** A question to the server: fields, a button, and below them the answer or the error. */
export function FormPanel({ title, hint, submit, children, result, onSubmit }: FormPanelProps) {
  const action = useAction()
  return (
    <section class="panel">
      <h3>{title}</h3>
      <p class="hint">{hint}</p>
      <form
        onSubmit={event => {
          event.preventDefault()
          void action.run(onSubmit)
        }}
      >
        {children}
        <button type="submit" disabled={action.isBusy}>
          {submit}
        </button>
      </form>
      {action.error !== null && (
        <p role="alert" class="bad">
          {action.error}
        </p>
      )}
      <div aria-live="polite">{result}</div>
    </section>
  )
}
