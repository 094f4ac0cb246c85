/** Gives a caller other limits for a while. */
import { useState } from 'preact/hooks'
import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'
import { Field } from './field.js'
import type { AboutCaller } from './reset-dialog.js'

const DURATIONS = ['10m', '1h', '6h', '1d', '7d']

export function OverrideDialog({ reference, subject, onClose }: AboutCaller) {
  const [kind, setKind] = useState<'numbers' | 'tier'>('numbers')
  const [minute, setMinute] = useState('100')
  const [tier, setTier] = useState('')
  const [ttl, setTtl] = useState('1h')
  const [reason, setReason] = useState('')
  const save = async (): Promise<void> => {
    const replacement = kind === 'tier' ? { tier } : { numbers: { minute: Number(minute) } }
    await sendJson('PUT', `v1/subjects/${encodeURIComponent(reference)}/override`, {
      ...replacement,
      ttl,
      reason,
      by: 'dashboard',
    })
  }
  return (
    <ConfirmDialog
      title={`Override for ${subject}`}
      confirm="Set override"
      onClose={onClose}
      onConfirm={save}
    >
      <label>
        What
        <select value={kind} onChange={event => setKind(event.currentTarget.value as typeof kind)}>
          <option value="numbers">requests a minute</option>
          <option value="tier">another tier</option>
        </select>
      </label>
      {kind === 'numbers' ? (
        <Field label="Requests a minute" type="number" value={minute} onValue={setMinute} />
      ) : (
        <Field label="Tier" value={tier} onValue={setTier} />
      )}
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
