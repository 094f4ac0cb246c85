/** Shows what a caller has used of its quotas, and credits units to them. */
import { useState } from 'preact/hooks'
import type { QuotaUsage } from './answers.js'
import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'
import { Field } from './field.js'
import { duration, number, percent } from './format.js'
import type { AboutCaller } from './reset-dialog.js'
import { useMayChange } from './role.js'
import { TablePanel } from './table-panel.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 2_000
/** All tiers keep what was used under this name, so that an upgrade keeps it. */
const OF_TIERS = 'tier'

export interface UsagePanelProps {
  readonly reference: string
  readonly subject: string
  /** The tier of the caller, if it is known. */
  readonly tier: string | null
}

export function UsagePanel({ reference, subject, tier }: UsagePanelProps) {
  const path = `v1/usage?subject=${encodeURIComponent(reference)}`
  const all = usePolled<{ quotas: readonly QuotaUsage[] }>(path, EVERY_MS)
  // Only requests may tell the tier of a caller; its limits are then not those of the file's default.
  const tierPath = tier === null ? path : `${path}&tier=${encodeURIComponent(tier)}`
  const ofTier = usePolled<{ quotas: readonly QuotaUsage[] }>(tierPath, EVERY_MS)
  const [credited, setCredited] = useState<QuotaUsage | null>(null)
  const mayChange = useMayChange()
  const error = all.error ?? ofTier.error
  const quotas =
    tier === null
      ? (all.value?.quotas ?? [])
      : [...(all.value?.quotas ?? []).filter(isNotOfTier), ...(ofTier.value?.quotas ?? [])]
  if (quotas.length === 0 && error === null) return null
  return (
    <>
      <TablePanel
        caption="Quotas"
        columns={[
          { name: 'quota' },
          { name: 'share', isUnseen: true, isMinor: true },
          { name: 'used', isNumber: true },
          { name: 'of', isNumber: true },
          { name: 'credits', isNumber: true },
          { name: 'before', isNumber: true, isMinor: true },
          { name: 'resets in', isNumber: true, isMinor: true },
          ...(mayChange ? [{ name: 'change', isUnseen: true }] : []),
        ]}
        empty={error}
        isStacked
      >
        {error === null &&
          quotas.map(quota => (
            <tr key={`${nameOf(quota)} ${quota.scope}`}>
              <th scope="row">{nameOf(quota)}</th>
              <td class="minor share">
                <meter min={0} max={Math.max(1, quota.limit)} high={quota.limit * 0.8} value={quota.used}>
                  {percent(quota.used / Math.max(1, quota.limit))}
                </meter>
              </td>
              <td class={quota.remaining === 0 ? 'number bad' : 'number'} data-name="used">
                {number(quota.used)}
              </td>
              <td class="number" data-name="of">
                {number(quota.limit + quota.carriedOver)}
              </td>
              <td class="number" data-name="credits">
                {number(quota.credits + quota.periodCredits)}
              </td>
              <td class="number minor">{number(quota.previous.used)}</td>
              <td class="number minor">{duration(quota.endsAt - Date.now())}</td>
              {mayChange && (
                <td class="number">
                  {(quota.policy !== OF_TIERS || tier !== null) && (
                    <button
                      type="button"
                      class="quiet"
                      aria-label={`Credit ${nameOf(quota)}`}
                      onClick={() => setCredited(quota)}
                    >
                      Credit
                    </button>
                  )}
                </td>
              )}
            </tr>
          ))}
      </TablePanel>
      {credited !== null && (
        <CreditDialog
          reference={reference}
          subject={subject}
          quota={credited}
          tier={tier}
          onClose={() => {
            setCredited(null)
            all.refresh()
            ofTier.refresh()
          }}
        />
      )}
    </>
  )
}

function isNotOfTier({ policy, scope }: QuotaUsage): boolean {
  return policy !== OF_TIERS || scope !== 'global'
}

function nameOf({ policy, quota, scope }: QuotaUsage): string {
  return `${policy}.${quota}${scope === 'global' ? '' : ` in ${scope}`}`
}

interface CreditDialogProps extends AboutCaller {
  readonly quota: QuotaUsage
  readonly tier: string | null
}

function CreditDialog({ reference, subject, quota, tier, onClose }: CreditDialogProps) {
  const [units, setUnits] = useState('')
  const [id, setId] = useState('')
  const [expires, setExpires] = useState('never')
  return (
    <ConfirmDialog
      title={`Credit units to ${subject}?`}
      confirm="Credit"
      onClose={onClose}
      onConfirm={async () => {
        const { policy, scope } = quota
        const named = policy === OF_TIERS ? { tier } : { policy }
        const body = { subject: reference, ...named, scope, units: Number(units), id, expires }
        const { added } = await sendJson<{ added: boolean }>('POST', 'v1/credit', body)
        if (!added) throw new Error(`${id} was credited already, and nothing was added.`)
      }}
    >
      <p>Every quota of {quota.policy === OF_TIERS ? `tier ${tier}` : quota.policy} gets them.</p>
      <Field label="Units" type="number" value={units} onValue={setUnits} />
      <Field label="Id, which credits once" placeholder="invoice-2027-01" value={id} onValue={setId} />
      <label>
        Ends
        <select value={expires} onChange={event => setExpires(event.currentTarget.value)}>
          <option value="never">when used</option>
          <option value="period">with the {quota.per}</option>
        </select>
      </label>
    </ConfirmDialog>
  )
}
