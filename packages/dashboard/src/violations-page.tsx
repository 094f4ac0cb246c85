/** The sampled log of denials, also to find the one that a caller complains about by its reference. */
import { useState } from 'preact/hooks'
import type { Violation } from './snapshot.js'
import { usePolled } from './use-polled.js'
import { ViolationTable } from './violation-table.js'

const EVERY_MS = 2_000

export function ViolationsPage() {
  const [reference, setReference] = useState('')
  const query = reference === '' ? '' : `&reference=${encodeURIComponent(reference)}`
  const { value, error } = usePolled<{ violations: Violation[] }>(`v1/violations?limit=200${query}`, EVERY_MS)
  return (
    <>
      <h2>Violations</h2>
      <label class="line">
        Reference
        <input value={reference} onInput={event => setReference(event.currentTarget.value.trim())} />
      </label>
      {error !== null && <p class="notice bad">{error}</p>}
      <ViolationTable violations={value?.violations ?? []} caption="Denials, a sample, the newest first" />
    </>
  )
}
