/** The denials of the last day, the newest first. */
import { useState } from 'preact/hooks'
import type { ShownDenial } from './answers.js'
import { DenialTable } from './denial-table.js'
import { Field } from './field.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 2_000
const FILTERS = ['rule', 'policy', 'tier'] as const

export function DenialsPage() {
  const [filters, setFilters] = useState<Readonly<Record<string, string>>>({})
  const query = FILTERS.map(name => `&${name}=${encodeURIComponent(filters[name]?.trim() ?? '')}`).join('')
  const { value, error } = usePolled<{ denials: ShownDenial[] }>(`v1/denials?limit=200${query}`, EVERY_MS)
  return (
    <>
      <h2>Denials</h2>
      <p class="hint">
        The last 10,000 of the fleet, for a day. Of one caller and rule the first five are kept, then one a
        minute; “times” says how many it stands for. The box above finds one by its reference or request id.
      </p>
      <div class="filters">
        {FILTERS.map(name => (
          <Field
            key={name}
            label={name}
            placeholder="any"
            isRequired={false}
            value={filters[name] ?? ''}
            onValue={text => setFilters({ ...filters, [name]: text })}
          />
        ))}
      </div>
      {error !== null && <p class="notice bad">{error}</p>}
      <DenialTable
        denials={value?.denials ?? []}
        caption="The newest first"
        empty={'None in the last day.'}
      />
    </>
  )
}
