import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'

export interface AboutCaller {
  readonly handle: string
  readonly subject: string
  onClose(): void
}

/** Resets a caller's limits after a confirmation. */
export function ResetDialog({ handle, subject, onClose }: AboutCaller) {
  return (
    <ConfirmDialog
      title={`Reset ${subject}?`}
      confirm="Reset"
      onClose={onClose}
      onConfirm={async () => {
        await sendJson('POST', `v1/subjects/${encodeURIComponent(handle)}/reset`, {})
      }}
    >
      <p>This clears what the caller has used: every limit starts afresh.</p>
    </ConfirmDialog>
  )
}
