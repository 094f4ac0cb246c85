import type { Row } from './answers.js'
import { number, percent } from './format.js'
import { TablePanel } from './table-panel.js'

/** Allowed and denied a second, by tier, by policy, or by who decided. */
export function RateTable({ caption, rows, none }: { caption: string; rows: readonly Row[]; none: string }) {
  return (
    <TablePanel
      caption={caption}
      columns={[
        { name: 'name', isUnseen: true },
        { name: 'allowed/s', isNumber: true },
        { name: 'denied/s', isNumber: true },
        { name: 'denied', isNumber: true },
      ]}
      empty={rows.length === 0 ? 'No request in the last ten seconds.' : null}
    >
      {rows.map(({ name, allowedPerSecond, deniedPerSecond, denialRate }) => (
        <tr key={name}>
          <th scope="row">{name ?? <span class="soft">{none}</span>}</th>
          <td class="number">{number(allowedPerSecond)}</td>
          <td class="number">{number(deniedPerSecond)}</td>
          <td class="number">{percent(denialRate)}</td>
        </tr>
      ))}
    </TablePanel>
  )
}
