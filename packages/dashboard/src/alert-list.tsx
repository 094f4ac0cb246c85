import { duration } from './format.js'
import type { Alert } from './snapshot.js'

/** The alerts that fire now; read out when one begins. */
export function AlertList({ alerts }: { alerts: readonly Alert[] }) {
  return (
    <div aria-live="polite">
      {alerts.map(({ id, text, sinceMs }) => (
        <p key={id} class="notice bad">
          <strong>{text}</strong> for {duration(Date.now() - sinceMs)}
        </p>
      ))}
    </div>
  )
}
