/** Questions in front of the page. The browser's own dialog keeps the focus, and Escape closes it. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { useAction } from './use-action.js'

export interface DialogProps {
  readonly title: string
  /** The label of the confirming button. */
  readonly confirm: string
  readonly children: ComponentChildren
  onClose(): void
  /** Runs on confirmation. The dialog closes if it succeeds and shows the error if it fails. */
  onConfirm(): Promise<void>
}

export function ConfirmDialog({ title, confirm, children, onClose, onConfirm }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const action = useAction()
  const titleId = useId()
  useEffect(() => element.current?.showModal(), [])
  return (
    <dialog ref={element} aria-labelledby={titleId} onClose={onClose}>
      <form
        onSubmit={async event => {
          event.preventDefault()
          if (await action.run(onConfirm)) element.current?.close()
        }}
      >
        <h3 id={titleId}>{title}</h3>
        {children}
        {action.error !== null && (
          <p role="alert" class="bad">
            {action.error}
          </p>
        )}
        <div class="buttons">
          <button type="button" class="quiet" onClick={() => element.current?.close()}>
            Cancel
          </button>
          <button type="submit" disabled={action.isBusy}>
            {confirm}
          </button>
        </div>
      </form>
    </dialog>
  )
}
