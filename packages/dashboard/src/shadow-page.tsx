import { useState } from 'preact/hooks'
import type { Point, Snapshot, WouldBe } from './answers.js'
import { DeniedCallerTable } from './denied-caller-table.js'
import { number, percent } from './format.js'
import { MarkList, type Range, RangeChoice, useHistory, useMarks } from './history.js'
import { TablePanel } from './table-panel.js'
import { ShadowChart } from './traffic-chart.js'

/** Shows what limits that are not enforced would have done: those in shadow, and candidates beside live ones. */
export function ShadowPage({ snapshot, history }: { snapshot: Snapshot; history: readonly Point[] }) {
  const { shadow, candidates, divergence, now, scope } = snapshot
  const [range, setRange] = useState<Range>('15m')
  const points = useHistory(range, history)
  const marks = useMarks(range)
  const whose = scope === 'fleet' ? 'the fleet, since each process started' : 'since this server started'
  return (
    <>
      <h2>Shadow</h2>
      <p>
        {number(now.shadowDeniedPerSecond)} requests/s pass that limits in shadow would have denied. Where{' '}
        <code>mode: compare</code> asks both, this server and the store have disagreed {number(divergence)}{' '}
        times.
      </p>
      <div class="toolbar">
        <MarkList marks={marks} />
        <RangeChoice range={range} onRange={setRange} />
      </div>
      <ShadowChart history={points} marks={marks} />
      <DeniedCallerTable
        deniedCallers={snapshot.shadowCallers}
        caption="Who would have been denied in the last five minutes"
        empty="Nobody."
        isShadow
      />
      <div class="columns">
        <WouldBeTable
          caption={`In shadow: ${whose}`}
          rows={shadow}
          empty="No limit in shadow was asked yet. A policy or rule with mode: shadow is evaluated and counted here, and denies nobody."
        />
        <WouldBeTable
          caption={`Candidates: ${whose}`}
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
        { name: 'would allow', isNumber: true, isMinor: true },
        { name: 'would deny', isNumber: true },
        { name: 'rate', isNumber: true },
      ]}
      empty={rows.length === 0 ? empty : null}
    >
      {rows.map(({ policy, wouldAllow, wouldDeny }) => (
        <tr key={policy}>
          <th scope="row">{policy}</th>
          <td class="number minor">{number(wouldAllow)}</td>
          <td class="number">{number(wouldDeny)}</td>
          <td class="number">{percent(wouldDeny / Math.max(1, wouldAllow + wouldDeny))}</td>
        </tr>
      ))}
    </TablePanel>
  )
}
