/** The overview: how much is allowed and denied, how long deciding takes, and who is denied most. */
import { useState } from 'preact/hooks'
import type { Point, Snapshot } from './answers.js'
import { DeniedCallerTable } from './denied-caller-table.js'
import { milliseconds, number, percent } from './format.js'
import { MarkList, type Range, RangeChoice, useHistory, useMarks } from './history.js'
import { Notices } from './notices.js'
import { RateTable } from './rate-table.js'
import { StorePanel } from './store-panel.js'
import { TablePanel } from './table-panel.js'
import { OverheadChart, TrafficChart } from './traffic-chart.js'

export function NowPage({ snapshot, history }: { snapshot: Snapshot; history: readonly Point[] }) {
  const { now } = snapshot
  const [range, setRange] = useState<Range>('15m')
  const points = useHistory(range, history)
  const marks = useMarks(range)
  return (
    <>
      <h2 class="hidden">Now</h2>
      <Notices snapshot={snapshot} />
      <dl class="stats">
        <Figure name="allowed/s" value={number(now.allowedPerSecond)} />
        <Figure name="denied/s" value={number(now.deniedPerSecond)} isAccent={now.deniedPerSecond > 0} />
        <Figure name="denied" value={percent(now.denialRate)} />
        <Figure name="overhead p50" value={milliseconds(now.overheadMs.p50)} />
        <Figure name="overhead p99" value={milliseconds(now.overheadMs.p99)} />
      </dl>
      <div class="toolbar">
        <MarkList marks={marks} />
        <RangeChoice range={range} onRange={setRange} />
      </div>
      <div class="columns">
        <TrafficChart history={points} marks={marks} />
        <OverheadChart history={points} marks={marks} />
      </div>
      <div class="columns">
        <DeniedCallerTable
          deniedCallers={snapshot.deniedCallers}
          caption="Denied most in the last five minutes"
          empty="Nobody was denied."
        />
        <StorePanel snapshot={snapshot} />
      </div>
      <div class="columns">
        <RateTable caption="By tier" rows={snapshot.byTier} none="no tier" />
        <RateTable caption="By policy" rows={snapshot.byPolicy} none="none" />
        <RateTable caption="By who decided" rows={snapshot.bySource} none="nobody" />
        {snapshot.gatewayAnswers.length > 0 && <GatewayAnswers snapshot={snapshot} />}
      </div>
    </>
  )
}

/** What reached neither a limit nor an upstream: bad requests, too many at once, upstreams that failed. */
function GatewayAnswers({ snapshot: { gatewayAnswers } }: { snapshot: Snapshot }) {
  return (
    <TablePanel
      caption="Answered by the gateway itself"
      columns={[
        { name: 'reason' },
        { name: 'answer' },
        { name: 'per second', isNumber: true, isMinor: true },
        { name: 'since the start', isNumber: true },
      ]}
      empty={null}
    >
      {gatewayAnswers.map(({ reason, status, perSecond, count }) => (
        <tr key={`${reason} ${status}`}>
          <th scope="row">{reason}</th>
          <td>{status}</td>
          <td class="number minor">{number(perSecond)}</td>
          <td class="number">{number(count)}</td>
        </tr>
      ))}
    </TablePanel>
  )
}

function Figure({ name, value, isAccent = false }: { name: string; value: string; isAccent?: boolean }) {
  return (
    <div class={isAccent ? 'figure accent' : 'figure'}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}
