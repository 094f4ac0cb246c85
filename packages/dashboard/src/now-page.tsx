/** Everything at a glance: how much passes, how much is denied, what it costs, and who is behind it. */
import { AlertList } from './alert-list.js'
import { milliseconds, number, percent } from './format.js'
import { RateTable } from './rate-table.js'
import type { Point, Snapshot } from './snapshot.js'
import { StorePanel } from './store-panel.js'
import { TrafficChart } from './traffic-chart.js'
import { ViolatorTable } from './violator-table.js'

export function NowPage({ snapshot, history }: { snapshot: Snapshot; history: readonly Point[] }) {
  const { now, control, alerts = [] } = snapshot
  return (
    <>
      <h2 class="hidden">Now</h2>
      {!control.enabled && <p class="notice bad">The limits are switched off: every request passes.</p>}
      {control.enabled && control.multiplier !== 1 && (
        <p class="notice">All limits are multiplied by {control.multiplier}.</p>
      )}
      <AlertList alerts={alerts} />
      <dl class="figures">
        <Figure name="allowed a second" value={number(now.allowedPerSecond)} />
        <Figure
          name="denied a second"
          value={number(now.deniedPerSecond)}
          isAccent={now.deniedPerSecond > 0}
        />
        <Figure name="of requests denied" value={percent(now.violationRate)} />
        <Figure name="overhead, median" value={milliseconds(now.overheadMs.p50)} />
        <Figure name="overhead, 99 of 100" value={milliseconds(now.overheadMs.p99)} />
      </dl>
      <TrafficChart history={history} />
      <div class="columns">
        <ViolatorTable snapshot={snapshot} />
        <StorePanel snapshot={snapshot} />
      </div>
      <div class="columns">
        <RateTable caption="By tier" rows={snapshot.byTier} none="no tier" />
        <RateTable caption="By policy" rows={snapshot.byPolicy} none="none" />
        <RateTable caption="By who decided" rows={snapshot.bySource} none="nobody" />
      </div>
    </>
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
