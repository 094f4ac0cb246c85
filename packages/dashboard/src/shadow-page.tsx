import { number, percent } from './format.js'
import type { Snapshot, WouldBe } from './snapshot.js'

/** Shows what limits that do not bind would have done: those in shadow, and candidates beside live ones. */
export function ShadowPage({ snapshot: { shadow, candidates, divergence, now } }: { snapshot: Snapshot }) {
  return (
    <>
      <h2>Shadow</h2>
      <p>
        {number(now.shadowDeniedPerSecond)} requests a second pass that limits in shadow would have denied.
        Process and store disagreed {number(divergence)} times (mode compare).
      </p>
      <div class="columns">
        <WouldBeTable caption="In shadow" rows={shadow} />
        <WouldBeTable caption="Candidates" rows={candidates} />
      </div>
    </>
  )
}

function WouldBeTable({ caption, rows }: { caption: string; rows: readonly WouldBe[] }) {
  return (
    <section class="panel">
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">policy</th>
            <th scope="col" class="number">
              would allow
            </th>
            <th scope="col" class="number">
              would deny
            </th>
            <th scope="col" class="number">
              denied
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ policy, wouldAllow, wouldDeny }) => (
            <tr key={policy}>
              <th scope="row">{policy}</th>
              <td class="number">{number(wouldAllow)}</td>
              <td class="number">{number(wouldDeny)}</td>
              <td class="number">{percent(wouldDeny / Math.max(1, wouldAllow + wouldDeny))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="empty">None.</p>}
    </section>
  )
}
