import type { ShownDenial } from './answers.js'
import { chargedTo } from './charged-to.js'
import { duration, instant, number } from './format.js'
import { SubjectLink } from './subject-link.js'
import { TablePanel } from './table-panel.js'

export interface DenialTableProps {
  readonly denials: readonly ShownDenial[]
  readonly caption: string
  /** Shown if there are no denials. */
  readonly empty: string
  /** Whether all of them are of the caller that the page is about. */
  readonly isOfOne?: boolean
}

/** Denials, the newest first. */
export function DenialTable({ denials, caption, empty, isOfOne = false }: DenialTableProps) {
  return (
    <TablePanel
      caption={caption}
      columns={[
        { name: 'at' },
        ...(isOfOne ? [] : [{ name: 'caller' }]),
        { name: 'request' },
        { name: 'limit', isMinor: true },
        { name: 'rule', isMinor: true },
        { name: 'source', isMinor: true },
        { name: 'retry after', isNumber: true, isMinor: true },
        { name: 'times', isNumber: true },
        { name: 'request id', isMinor: true },
      ]}
      empty={denials.length === 0 ? empty : null}
    >
      {denials.map((denial, index) => (
        <DenialRow key={`${denial.atMs} ${denial.reference} ${index}`} denial={denial} isOfOne={isOfOne} />
      ))}
    </TablePanel>
  )
}

function DenialRow({ denial, isOfOne }: { denial: ShownDenial; isOfOne: boolean }) {
  const { atMs, subject, reference, method, path, limit, rule, source, retryAfterMs, count, requestId } =
    denial
  return (
    <tr>
      <td class="time">{instant(atMs)}</td>
      {!isOfOne && (
        <td>
          <SubjectLink subject={subject} reference={reference} />
        </td>
      )}
      <td class="wrap">{path === null ? chargedTo(denial) : `${method ?? ''} ${path}`}</td>
      <td class="minor">{limit ?? chargedTo(denial)}</td>
      <td class="minor">{rule ?? ''}</td>
      <td class="minor">{source}</td>
      <td class="number minor">{retryAfterMs === null ? 'never' : duration(retryAfterMs)}</td>
      <td class="number">{number(count)}</td>
      <td class="minor">{requestId !== null && <code>{requestId}</code>}</td>
    </tr>
  )
}
