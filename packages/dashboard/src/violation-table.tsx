import type { ShownViolation } from './answers.js'
import { chargedTo } from './charged-to.js'
import { duration, instant } from './format.js'
import { linkTo } from './route.js'
import { TablePanel } from './table-panel.js'

export interface ViolationTableProps {
  readonly violations: readonly ShownViolation[]
  readonly caption: string
  /** Shown if there are no denials. */
  readonly empty: string
}

/** Denials, the newest first. */
export function ViolationTable({ violations, caption, empty }: ViolationTableProps) {
  return (
    <TablePanel
      caption={caption}
      columns={[
        { name: 'at' },
        { name: 'caller' },
        { name: 'by' },
        { name: 'rule', isMinor: true },
        { name: 'told to wait', isNumber: true, isMinor: true },
        { name: 'reference', isMinor: true },
      ]}
      empty={violations.length === 0 ? empty : null}
    >
      {violations.map(({ atMs, reference, subject, handle, policy, tier, rule, retryAfterMs }, index) => (
        <tr key={`${atMs} ${reference} ${index}`}>
          <td class="time">{instant(atMs)}</td>
          <td>
            <a href={linkTo('subject', handle)}>{subject}</a>
          </td>
          <td>{chargedTo({ policy, tier })}</td>
          <td class="minor">{rule ?? ''}</td>
          <td class="number minor">{retryAfterMs === null ? 'for ever' : duration(retryAfterMs)}</td>
          <td class="minor">
            <code>{reference}</code>
          </td>
        </tr>
      ))}
    </TablePanel>
  )
}
