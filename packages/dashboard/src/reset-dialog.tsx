import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'

export interface AboutCaller {
  readonly reference: string
  readonly subject: string
  onClose(): void
}

/** Resets a caller's limits after a confirmation. */
export function ResetDialog({ reference, subject, onClose }: AboutCaller) {
  return (
    <ConfirmDialog
      title={`Reset ${subject}?`}
      confirm="Reset"
      onClose={onClose}
      onConfirm={async () => {
        await sendJson('POST', `v1/subjects/${encodeURIComponent(reference)}/reset`, {})
      }}
    >
      <p>This clears what the caller has used: every limit starts afresh.</p>
    </ConfirmDialog>
  )
}
