/** The sampled log of denials. An operator can find the one that a caller complains about by its reference. */
import { useState } from 'preact/hooks'
import type { ShownViolation } from './answers.js'
import { Field } from './field.js'
import { usePolled } from './use-polled.js'
import { ViolationTable } from './violation-table.js'

const EVERY_MS = 2_000

export function ViolationsPage() {
  const [typed, setReference] = useState('')
  const reference = typed.trim()
  const query = reference === '' ? '' : `&reference=${encodeURIComponent(reference)}`
  const path = `v1/violations?limit=200${query}`
  const { value, error } = usePolled<{ violations: ShownViolation[] }>(path, EVERY_MS)
  return (
    <>
      <h2>Violations</h2>
      <p class="hint">
        A sample, kept for a day: ten denials a second at most, and the same caller and policy once a minute.
      </p>
      <div class="narrow">
        <Field
          label="Reference that a refused caller was given"
          placeholder="all"
          isRequired={false}
          value={typed}
          onValue={setReference}
        />
      </div>
      {error !== null && <p class="notice bad">{error}</p>}
      <ViolationTable
        violations={value?.violations ?? []}
        caption="Denials, the newest first"
        empty={
          reference === ''
            ? 'Nobody was denied in the last day.'
            : 'No denial of this reference was written down in the last day.'
        }
      />
    </>
  )
}
