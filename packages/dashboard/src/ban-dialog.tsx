import { useState } from 'preact/hooks'
import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'
import { Field } from './field.js'
import type { AboutCaller } from './reset-dialog.js'

const DURATIONS = ['10m', '1h', '6h', '1d', '7d']

/** Denies everything a caller asks for, for a while. */
export function BanDialog({ reference, subject, onClose }: AboutCaller) {
  const [ttl, setTtl] = useState('1h')
  const [reason, setReason] = useState('')
  return (
    <ConfirmDialog
      title={`Ban ${subject}?`}
      confirm="Ban"
      onClose={onClose}
      onConfirm={async () => {
        const path = `v1/subjects/${encodeURIComponent(reference)}/ban`
        await sendJson('POST', path, { ttl, reason, by: 'dashboard' })
      }}
    >
      <p>Every request of this caller is denied within a second, whichever rule it meets.</p>
      <label>
        For
        <select value={ttl} onChange={event => setTtl(event.currentTarget.value)}>
          {DURATIONS.map(text => (
            <option key={text}>{text}</option>
          ))}
        </select>
      </label>
      <Field label="Reason" value={reason} onValue={setReason} />
    </ConfirmDialog>
  )
}
