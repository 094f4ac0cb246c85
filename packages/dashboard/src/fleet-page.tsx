/** The processes of the fleet, what is behind them, and the nodes of the store. */
import type { ShownFleet, Snapshot } from './answers.js'
import { bytes, duration, instant, milliseconds, number, percent } from './format.js'
import { StorePanel } from './store-panel.js'
import { TablePanel } from './table-panel.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 2_000
const OUTCOMES = ['2xx', '3xx', '4xx', '5xx', 'failed'] as const
/** Not shown where there is little room: those that nobody is called for. */
const MINOR: readonly string[] = ['3xx', '4xx']
/** A process that is this late answers everybody late. */
const LATE_MS = 50

export function FleetPage({ snapshot }: { snapshot: Snapshot }) {
  const { value, error } = usePolled<ShownFleet>('v1/fleet', EVERY_MS)
  if (value === null) return <p class="notice">{error ?? 'Looking …'}</p>
  const versions = new Set(value.processes.map(({ configVersion }) => configVersion))
  return (
    <>
      <div class="page-head">
        <h2>Fleet</h2>
        <span class="soft">
          {value.live === 1 ? '1 process' : `${number(value.live)} processes`}
          {value.scope === 'process' && snapshot.store.kind === 'redis' && `, as of ${instant(value.asOfMs)}`}
        </span>
      </div>
      {error !== null && <p class="notice bad">{error}</p>}
      {versions.size > 1 && (
        <p class="notice bad">
          <strong>The processes run {versions.size} different policy files.</strong> A deployment may be under
          way.
        </p>
      )}
      <Processes fleet={value} />
      <Upstreams fleet={value} />
      <div class="columns">
        <Nodes fleet={value} />
        <StorePanel snapshot={snapshot} />
      </div>
    </>
  )
}

interface OfFleet {
  readonly fleet: ShownFleet
}

function Processes({ fleet: { processes, live } }: OfFleet) {
  return (
    <TablePanel
      caption={live > processes.length ? `The first ${processes.length} processes` : 'Processes'}
      columns={[
        { name: 'service' },
        { name: 'process', isMinor: true },
        { name: 'version', isMinor: true },
        { name: 'policy', isMinor: true },
        { name: 'up', isNumber: true, isMinor: true },
        { name: 'requests/s', isNumber: true },
        { name: 'decided by', isMinor: true },
        { name: 'lag p99 ≤', isNumber: true },
        { name: 'memory', isNumber: true, isMinor: true },
        { name: 'connections', isNumber: true, isMinor: true },
        { name: 'store' },
      ]}
      empty={null}
    >
      {processes.map(process => (
        <tr key={process.id}>
          <th scope="row">
            {process.service === '' ? <span class="soft">none</span> : process.service}
            {process.isThis && <span class="tag">this server</span>}
          </th>
          <td class="minor">
            <code>{process.id}</code>
          </td>
          <td class="minor">{process.version}</td>
          <td class="minor">
            {process.configVersion === null ? 'none' : <code>{process.configVersion}</code>}
          </td>
          <td class="number minor">{duration(Date.now() - process.startedAtMs)}</td>
          <td class="number">{number(process.requestsPerSecond)}</td>
          <td class="minor">{sourceWords(process)}</td>
          <td class={process.lagMs > LATE_MS ? 'number bad' : 'number'}>{milliseconds(process.lagMs)}</td>
          <td class="number minor">{bytes(process.rssBytes)}</td>
          <td class="number minor">{number(process.connections)}</td>
          <td>
            <StoreState breakers={process.breakers} />
          </td>
        </tr>
      ))}
    </TablePanel>
  )
}

type Process = ShownFleet['processes'][number]

/** `redis 98.2 %, local 1.8 %`. */
function sourceWords({ bySource, requestsPerSecond }: Process): string {
  if (requestsPerSecond === 0) return ''
  const [only, ...others] = bySource
  if (others.length === 0) return only?.source ?? ''
  return bySource
    .map(({ source, perSecond }) => `${source} ${percent(perSecond / requestsPerSecond)}`)
    .join(', ')
}

function StoreState({ breakers }: Pick<Process, 'breakers'>) {
  const away = breakers.filter(({ state }) => state !== 'closed')
  if (away.length === 0) return <>up</>
  return (
    <span class="bad">
      {away.map(({ node, state }) => `${node === '' ? '' : `${node} `}${state}`).join(', ')}
    </span>
  )
}

function Upstreams({ fleet: { upstreams } }: OfFleet) {
  return (
    <TablePanel
      caption="Upstreams, responses/s"
      columns={[
        { name: 'upstream' },
        ...OUTCOMES.map(name => ({ name, isNumber: true, isMinor: MINOR.includes(name) })),
        { name: 'p50 ≤', isNumber: true, isMinor: true },
        { name: 'p99 ≤', isNumber: true },
        { name: 'waiting', isNumber: true, isMinor: true },
      ]}
      empty={upstreams.length === 0 ? 'No gateway has forwarded anything yet.' : null}
    >
      {upstreams.map(({ upstream, perSecond, p50Ms, p99Ms, waiting, capacity }) => (
        <tr key={upstream}>
          <th scope="row">{upstream}</th>
          {OUTCOMES.map(name => {
            const value = perSecond[name] ?? 0
            const isBad = value > 0 && (name === '5xx' || name === 'failed')
            return (
              <td key={name} class={`number${isBad ? ' bad' : ''}${MINOR.includes(name) ? ' minor' : ''}`}>
                {number(value)}
              </td>
            )
          })}
          <td class="number minor">{milliseconds(p50Ms)}</td>
          <td class="number">{milliseconds(p99Ms)}</td>
          <td class="number minor">
            {waiting === null
              ? ''
              : `${number(waiting)}${capacity === null ? '' : ` of ${number(capacity)}`}`}
          </td>
        </tr>
      ))}
    </TablePanel>
  )
}

function Nodes({ fleet: { nodes } }: OfFleet) {
  return (
    <TablePanel
      caption="Redis nodes that were unreachable"
      columns={[
        { name: 'node' },
        { name: 'open', isNumber: true },
        { name: 'half-open', isNumber: true },
        { name: 'closed', isNumber: true },
        { name: 'since', isMinor: true },
      ]}
      empty={nodes.length === 0 ? 'None, for any process that runs now: every breaker is closed.' : null}
    >
      {nodes.map(({ node, open, halfOpen, closed, sinceMs }) => (
        <tr key={node}>
          <th scope="row">{node === '' ? 'Redis' : node}</th>
          <td class={open > 0 ? 'number bad' : 'number'}>{number(open)}</td>
          <td class={halfOpen > 0 ? 'number bad' : 'number'}>{number(halfOpen)}</td>
          <td class="number">{number(closed)}</td>
          <td class="minor time">{instant(sinceMs)}</td>
        </tr>
      ))}
    </TablePanel>
  )
}
