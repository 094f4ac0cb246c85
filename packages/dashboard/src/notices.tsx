/** Says first what an operator must know before any figure: that limits are off, that the store is away, that an alert fires. */
import type { Alert, Snapshot } from './answers.js'
import { duration, instant, number } from './format.js'

export function Notices({ snapshot }: { snapshot: Snapshot }) {
  const { control, alerts } = snapshot
  return (
    // Screen readers announce a notice when it appears.
    <div aria-live="polite">
      {!control.enabled && <p class="notice bad">The limits are switched off: every request passes.</p>}
      {control.enabled && control.multiplier !== 1 && (
        <p class="notice">
          {control.multiplier === 0
            ? 'Throttling is paused: only bans hold.'
            : `All limits are multiplied by ${control.multiplier}.`}
        </p>
      )}
      <StoreAway snapshot={snapshot} />
      <Lost lost={snapshot.lost} />
      {alerts.map(alert => (
        <AlertNotice key={alert.id} alert={alert} />
      ))}
    </div>
  )
}

/** Says what is still known while the store is away, and how long it has been away. */
function StoreAway({ snapshot: { store, scope, asOfMs, processes } }: { snapshot: Snapshot }) {
  if (store.kind !== 'redis' || store.state === 'up') return null
  return (
    <p class="notice bad">
      <strong>Redis has not answered since {instant(store.sinceMs)}.</strong> Requests are decided by their
      failure mode.
      {scope === 'process' &&
        ` The stats below are those of this server alone. What is said of ${number(processes.live)} processes and of Redis' memory is as of ${instant(asOfMs)}.`}
    </p>
  )
}

/** Says that Redis came back without what operators had set. */
function Lost({ lost }: Pick<Snapshot, 'lost'>) {
  if (lost === null) return null
  const what = [
    ...(lost.control ? ['the switches'] : []),
    ...(lost.overrides > 0 ? [lost.overrides === 1 ? '1 override' : `${lost.overrides} overrides`] : []),
  ]
  return (
    <p class="notice bad">
      <strong>Redis has lost {what.join(' and ')}.</strong> Running servers go on applying them.{' '}
      <code>headgate restore</code> writes them back, <code>headgate restore --clear</code> drops them.
    </p>
  )
}

function AlertNotice({ alert: { text, sinceMs } }: { alert: Alert }) {
  return (
    <p class="notice bad">
      <strong>{text}</strong> for {duration(Date.now() - sinceMs)}
    </p>
  )
}
