/** The sampled log of denials. An operator can find the one that a caller complains about by its reference. */
import { useState } from 'preact/hooks'
import type { ShownDenial } from './answers.js'
import { DenialTable } from './denial-table.js'
import { Field } from './field.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 2_000

export function DenialsPage() {
  const [typed, setReference] = useState('')
  const reference = typed.trim()
  const query = reference === '' ? '' : `&reference=${encodeURIComponent(reference)}`
  const path = `v1/denials?limit=200${query}`
  const { value, error } = usePolled<{ denials: ShownDenial[] }>(path, EVERY_MS)
  return (
    <>
      <h2>Denials</h2>
      <p class="hint">
        The last 10,000 of the fleet, for a day. Of one caller and rule the first five are kept, then one a
        minute; “times” says how many it stands for.
      </p>
      <div class="narrow">
        <Field
          label="Reference that a rejected caller was given"
          placeholder="all"
          isRequired={false}
          value={typed}
          onValue={setReference}
        />
      </div>
      {error !== null && <p class="notice bad">{error}</p>}
      <DenialTable
        denials={value?.denials ?? []}
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
