/** Shows the policy file in force with what its rules did, and tries another one before anybody saves it. */
import type { ShownPolicy } from './answers.js'
import { instant, number, percent } from './format.js'
import { PolicyEditor } from './policy-editor.js'
import { type Column, TablePanel } from './table-panel.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 2_000
const SPANS = ['minute', 'hour', 'day', 'month', 'burst'] as const
const COUNTS: readonly Column[] = [
  { name: 'decided', isNumber: true },
  { name: 'denied', isNumber: true },
  { name: 'rate', isNumber: true, isMinor: true },
]

export function PolicyPage() {
  const { value, error } = usePolled<ShownPolicy>('v1/policy', EVERY_MS)
  if (value === null) return <p class="notice">{error ?? 'Looking …'}</p>
  return (
    <>
      <div class="page-head">
        <h2>Policy</h2>
        <code>{value.version}</code>
        <span class="soft">
          in force here since {instant(value.loadedAtMs)}, mode {value.mode}, levels {value.levels}, default{' '}
          {value.default}
        </span>
      </div>
      {value.state === 'stale' && (
        <p class="notice bad">
          <strong>The file has changed into one that cannot be used.</strong> The last good one stays in
          force; the editor below shows the mistakes.
        </p>
      )}
      <Rules policy={value} />
      <div class="columns">
        <Tiers policy={value} />
        <Policies policy={value} />
        <Versions policy={value} />
      </div>
      <PolicyEditor />
    </>
  )
}

interface OfPolicy {
  readonly policy: ShownPolicy
}

function Rules({ policy: { rules, withoutRule, countedSinceMs } }: OfPolicy) {
  return (
    <TablePanel
      caption={`Rules in order, with requests since ${instant(countedSinceMs)}`}
      columns={[
        { name: '#', isNumber: true, isMinor: true },
        { name: 'rule' },
        { name: 'match' },
        { name: 'charges', isMinor: true },
        { name: 'limits', isMinor: true },
        { name: 'mode', isMinor: true },
        ...COUNTS,
      ]}
      empty={
        rules.length + withoutRule.length === 0
          ? 'The file has no rules, and there were no requests yet.'
          : null
      }
    >
      {rules.map(({ name, match, charges, limits, mode, ...counts }, index) => (
        <tr key={name}>
          <td class="number minor soft">{index + 1}</td>
          <th scope="row">{name}</th>
          <td class="wrap">{match}</td>
          <td class="minor">{charges}</td>
          <td class="minor">{limits.join(', ')}</td>
          <td class="minor">{mode}</td>
          <Counts {...counts} />
        </tr>
      ))}
      {withoutRule.map(({ name, ...counts }) => (
        <tr key={name}>
          <td class="minor" />
          <th scope="row" class="soft">
            {name === '' ? 'no rule' : name}
          </th>
          <td class="soft">no rule decided</td>
          <td class="minor" colSpan={3} />
          <Counts {...counts} />
        </tr>
      ))}
    </TablePanel>
  )
}

function Counts({ decided, denied }: { decided: number; denied: number }) {
  return (
    <>
      <td class="number">{number(decided)}</td>
      <td class={denied > 0 ? 'number bad' : 'number'}>{number(denied)}</td>
      <td class="number minor">{decided === 0 ? '' : percent(denied / decided)}</td>
    </>
  )
}

function Tiers({ policy: { tiers } }: OfPolicy) {
  const spans = SPANS.filter(span => tiers.some(({ numbers }) => numbers[span] !== undefined))
  return (
    <TablePanel
      caption="Tiers"
      columns={[{ name: 'tier' }, ...spans.map(name => ({ name, isNumber: true }))]}
      empty={tiers.length === 0 ? 'The file has none.' : null}
      isWide={spans.length === SPANS.length}
      isStacked
    >
      {tiers.map(({ name, numbers }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          {spans.map(span => {
            const value = numbers[span]
            return (
              <td key={span} class="number" data-name={span}>
                {typeof value === 'number' ? number(value) : String(value ?? '')}
              </td>
            )
          })}
        </tr>
      ))}
    </TablePanel>
  )
}

function Policies({ policy: { policies } }: OfPolicy) {
  return (
    <TablePanel
      caption="Policies"
      columns={[{ name: 'policy' }, { name: 'limits' }, { name: 'mode', isMinor: true }]}
      empty={policies.length === 0 ? 'The file has none.' : null}
    >
      {policies.map(({ name, limits, candidate, mode }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td>
            {limits.join(', ')}
            {candidate.length > 0 && <span class="soft">; candidate {candidate.join(', ')}</span>}
          </td>
          <td class="minor">{mode}</td>
        </tr>
      ))}
    </TablePanel>
  )
}

function Versions({ policy: { versions, version: own } }: OfPolicy) {
  return (
    <TablePanel
      caption="Who runs which version"
      columns={[{ name: 'version' }, { name: 'processes', isNumber: true }, { name: 'services' }]}
      empty={null}
    >
      {versions.map(({ version, processes, services }) => (
        <tr key={version}>
          <th scope="row">{version === null ? 'no file' : <code>{version}</code>}</th>
          <td class="number">{number(processes)}</td>
          <td>
            {services.join(', ')}
            {version === own && <span class="tag">this server</span>}
          </td>
        </tr>
      ))}
    </TablePanel>
  )
}
