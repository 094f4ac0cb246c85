import { number, percent } from './format.js'
import type { Row } from './snapshot.js'

/** Allowed and denied a second, by tier, by policy, or by who decided. */
export function RateTable({ caption, rows, none }: { caption: string; rows: readonly Row[]; none: string }) {
  return (
    <section class="panel">
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">name</th>
            <th scope="col" class="number">
              allowed/s
            </th>
            <th scope="col" class="number">
              denied/s
            </th>
            <th scope="col" class="number">
              denied
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, allowedPerSecond, deniedPerSecond, violationRate }) => (
            <tr key={name}>
              <th scope="row">{name ?? none}</th>
              <td class="number">{number(allowedPerSecond)}</td>
              <td class="number">{number(deniedPerSecond)}</td>
              <td class="number">{percent(violationRate)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="empty">No requests yet.</p>}
    </section>
  )
}
