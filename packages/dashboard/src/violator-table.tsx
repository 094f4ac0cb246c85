/** Lists who is denied most, with what can be done about it. */
import { useState } from 'preact/hooks'
import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'
import { number } from './format.js'
import { OverrideDialog } from './override-dialog.js'
import { linkTo } from './route.js'
import type { Snapshot, Violator } from './snapshot.js'

type Asked = { readonly action: 'override' | 'reset'; readonly violator: Violator }

export function ViolatorTable({ snapshot }: { snapshot: Snapshot }) {
  const [asked, setAsked] = useState<Asked | null>(null)
  const close = (): void => setAsked(null)
  return (
    <section class="panel wide">
      <table>
        <caption>Denied most in the last five minutes</caption>
        <thead>
          <tr>
            <th scope="col">caller</th>
            <th scope="col">tier or policy</th>
            <th scope="col" class="number">
              denied
            </th>
            <th scope="col" class="number">
              a second
            </th>
            <th scope="col">
              <span class="hidden">actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {snapshot.violators.map(violator => (
            <tr key={violator.handle}>
              <th scope="row">
                <a href={linkTo('subject', violator.handle)}>{violator.subject}</a>
                {violator.overridden && <span class="tag">overridden</span>}
              </th>
              <td>{violator.tier ?? violator.policy ?? ''}</td>
              <td class="number">{number(violator.denied)}</td>
              <td class="number">{number(violator.deniedPerSecond)}</td>
              <td class="actions">
                <button
                  type="button"
                  class="quiet"
                  onClick={() => setAsked({ action: 'override', violator })}
                >
                  Override<span class="hidden"> {violator.subject}</span>
                </button>
                <button type="button" class="quiet" onClick={() => setAsked({ action: 'reset', violator })}>
                  Reset<span class="hidden"> {violator.subject}</span>
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {snapshot.violators.length === 0 && <p class="empty">Nobody was denied.</p>}
      {asked?.action === 'override' && (
        <OverrideDialog handle={asked.violator.handle} subject={asked.violator.subject} onClose={close} />
      )}
      {asked?.action === 'reset' && <ResetDialog {...asked.violator} onClose={close} />}
    </section>
  )
}

/** Forgets what a caller has used, after asking once. */
export function ResetDialog({
  handle,
  subject,
  onClose,
}: {
  handle: string
  subject: string
  onClose(): void
}) {
  return (
    <ConfirmDialog
      title={`Reset ${subject}?`}
      confirm="Reset"
      onClose={onClose}
      onConfirm={async () => {
        await sendJson('POST', `v1/subjects/${encodeURIComponent(handle)}/reset`, {})
      }}
    >
      <p>What the caller has used is forgotten: every limit starts afresh.</p>
    </ConfirmDialog>
  )
}
