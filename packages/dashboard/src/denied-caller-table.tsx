/** Lists who is denied most, with what can be done about it. */
import { useState } from 'preact/hooks'
import type { ShownDeniedCaller } from './answers.js'
import { chargedTo } from './charged-to.js'
import { number } from './format.js'
import { OverrideDialog } from './override-dialog.js'
import { ResetDialog } from './reset-dialog.js'
import { useMayChange } from './role.js'
import { SubjectLink } from './subject-link.js'
import { TablePanel } from './table-panel.js'

type Asked = { readonly action: 'override' | 'reset'; readonly deniedCaller: ShownDeniedCaller }

const FIRST = 10

export interface DeniedCallerTableProps {
  readonly deniedCallers: readonly ShownDeniedCaller[]
  readonly caption: string
  readonly empty: string
  /** Whether nobody was denied, and would have been. */
  readonly isShadow?: boolean
}

export function DeniedCallerTable({
  deniedCallers,
  caption,
  empty,
  isShadow = false,
}: DeniedCallerTableProps) {
  const [asked, setAsked] = useState<Asked | null>(null)
  const [isLong, setLong] = useState(false)
  const mayChange = useMayChange() && !isShadow
  const close = (): void => setAsked(null)
  const more = deniedCallers.length - FIRST
  return (
    <>
      <TablePanel
        caption={caption}
        columns={[
          { name: 'caller' },
          { name: 'by', isMinor: true },
          { name: isShadow ? 'would deny' : 'denied', isNumber: true },
          { name: isShadow ? 'would deny/s' : 'denied/s', isNumber: true, isMinor: true },
          ...(mayChange ? [{ name: 'actions', isUnseen: true }] : []),
        ]}
        empty={deniedCallers.length === 0 ? empty : null}
        isWide
      >
        {deniedCallers.slice(0, isLong ? undefined : FIRST).map(deniedCaller => (
          <DeniedCallerRow
            key={deniedCaller.reference}
            deniedCaller={deniedCaller}
            onAsk={mayChange ? setAsked : null}
          />
        ))}
        {more > 0 && (
          <tr>
            <td colSpan={5} class="more">
              <button type="button" class="quiet" aria-expanded={isLong} onClick={() => setLong(!isLong)}>
                {isLong ? 'Show fewer' : `Show ${more} more`}
              </button>
            </td>
          </tr>
        )}
      </TablePanel>
      {asked?.action === 'override' && <OverrideDialog {...asked.deniedCaller} onClose={close} />}
      {asked?.action === 'reset' && <ResetDialog {...asked.deniedCaller} onClose={close} />}
    </>
  )
}

function DeniedCallerRow({
  deniedCaller,
  onAsk,
}: {
  deniedCaller: ShownDeniedCaller
  /** Null if nothing can be done about it. */
  onAsk: ((asked: Asked) => void) | null
}) {
  const { reference, subject, overridden, denied, deniedPerSecond } = deniedCaller
  return (
    <tr>
      <th scope="row">
        <SubjectLink subject={subject} reference={reference} />
        {overridden && <span class="tag">overridden</span>}
      </th>
      <td class="minor">{chargedTo(deniedCaller)}</td>
      <td class="number">{number(denied)}</td>
      <td class="number minor">{number(deniedPerSecond)}</td>
      {onAsk !== null && (
        <td class="actions">
          <button type="button" class="quiet" onClick={() => onAsk({ action: 'override', deniedCaller })}>
            Override<span class="hidden"> {subject}</span>
          </button>
          <button type="button" class="quiet" onClick={() => onAsk({ action: 'reset', deniedCaller })}>
            Reset<span class="hidden"> {subject}</span>
          </button>
        </td>
      )}
    </tr>
  )
}
