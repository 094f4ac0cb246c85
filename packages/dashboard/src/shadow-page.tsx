import type { Snapshot, WouldBe } from './answers.js'
import { number, percent } from './format.js'
import { TablePanel } from './table-panel.js'

/** Shows what limits that are not enforced would have done: those in shadow, and candidates beside live ones. */
export function ShadowPage({ snapshot: { shadow, candidates, divergence, now } }: { snapshot: Snapshot }) {
  return (
    <>
      <h2>Shadow</h2>
      <p>
        {number(now.shadowDeniedPerSecond)} requests/s pass that limits in shadow would have denied. Where{' '}
        <code>mode: compare</code> asks both, this server and the store have disagreed {number(divergence)}{' '}
        times.
      </p>
      <div class="columns">
        <WouldBeTable
          caption="In shadow, since this server started"
          rows={shadow}
          empty="No limit in shadow was asked yet. A policy or rule with mode: shadow is evaluated and counted here, and denies nobody."
        />
        <WouldBeTable
          caption="Candidates, since this server started"
          rows={candidates}
          empty="No candidate was asked yet. A policy's candidate is evaluated beside its limits and counted here, to see what other numbers would do."
        />
      </div>
    </>
  )
}

interface WouldBeProps {
  readonly caption: string
  readonly rows: readonly WouldBe[]
  readonly empty: string
}

function WouldBeTable({ caption, rows, empty }: WouldBeProps) {
  return (
    <TablePanel
      caption={caption}
      columns={[
        { name: 'policy' },
        { name: 'would allow', isNumber: true },
        { name: 'would deny', isNumber: true },
        { name: 'denied', isNumber: true },
      ]}
      empty={rows.length === 0 ? empty : null}
    >
      {rows.map(({ policy, wouldAllow, wouldDeny }) => (
        <tr key={policy}>
          <th scope="row">{policy}</th>
          <td class="number">{number(wouldAllow)}</td>
          <td class="number">{number(wouldDeny)}</td>
          <td class="number">{percent(wouldDeny / Math.max(1, wouldAllow + wouldDeny))}</td>
        </tr>
      ))}
    </TablePanel>
  )
}
