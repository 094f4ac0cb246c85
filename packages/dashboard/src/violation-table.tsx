import { duration, instant } from './format.js'
import { linkTo } from './route.js'
import type { Violation } from './snapshot.js'

/** Denials, the newest first. */
export function ViolationTable({
  violations,
  caption,
}: {
  violations: readonly Violation[]
  caption: string
}) {
  return (
    <section class="panel">
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">at</th>
            <th scope="col">caller</th>
            <th scope="col">policy</th>
            <th scope="col">rule</th>
            <th scope="col" class="number">
              told to wait
            </th>
            <th scope="col">reference</th>
          </tr>
        </thead>
        <tbody>
          {violations.map(({ atMs, reference, subject, handle, policy, tier, rule, retryAfterMs }, index) => (
            <tr key={`${atMs} ${reference} ${index}`}>
              <td class="number">{instant(atMs)}</td>
              <td>
                <a href={linkTo('subject', handle)}>{subject}</a>
              </td>
              <td>{tier ?? policy}</td>
              <td>{rule ?? ''}</td>
              <td class="number">{retryAfterMs === null ? 'for ever' : duration(retryAfterMs)}</td>
              <td>
                <code>{reference}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {violations.length === 0 && <p class="empty">None.</p>}
    </section>
  )
}
