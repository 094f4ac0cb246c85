/** Shows one caller: the remaining quota of its limits over time, and its denials. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import type { ShownSubject } from './answers.js'
import { sendJson } from './api.js'
import { DenialTable } from './denial-table.js'
import { duration, number, percent } from './format.js'
import { type Line, LineChart } from './line-chart.js'
import { OverrideDialog } from './override-dialog.js'
import { overrideWords } from './override-words.js'
import { ResetDialog } from './reset-dialog.js'
import { useMayChange } from './role.js'
import { TablePanel } from './table-panel.js'
import { useAction } from './use-action.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 1_000
const KEPT_SAMPLES = 600
const COLOURS = ['--calm', '--third', '--fourth', '--soft']

type LimitState = ShownSubject['limits'][number]
type Sample = { readonly atMs: number; readonly remaining: ReadonlyMap<string, number> }

export function SubjectPage({ reference }: { reference: string }) {
  const path = `v1/subjects/${encodeURIComponent(reference)}`
  const { value, error, refresh } = usePolled<ShownSubject>(path, EVERY_MS)
  const [dialog, setDialog] = useState<'override' | 'reset' | null>(null)
  const removal = useAction()
  const mayChange = useMayChange()
  const samples = useSamples(value)
  const close = (): void => {
    setDialog(null)
    refresh()
  }
  if (value === null) return <p class="notice">{error ?? 'Looking …'}</p>
  const names = value.limits.map(limit => nameOf(limit, value.subject))
  return (
    <>
      <h2>{value.subject}</h2>
      {mayChange && (
        <div class="buttons">
          <button type="button" class="quiet" onClick={() => setDialog('override')}>
            Override
          </button>
          <button type="button" class="quiet" onClick={() => setDialog('reset')}>
            Reset
          </button>
        </div>
      )}
      {error !== null && <p class="notice bad">{error}</p>}
      {value.override !== null && (
        <p class="notice">
          {overrideWords(value.override)}{' '}
          {mayChange && (
            <button
              type="button"
              class="quiet"
              onClick={() =>
                removal.run(async () => void (await sendJson('DELETE', `${path}/override`, {}))).then(refresh)
              }
            >
              Remove
            </button>
          )}
        </p>
      )}
      {removal.error !== null && (
        <p role="alert" class="notice bad">
          {removal.error}
        </p>
      )}
      <LimitsOverTime samples={samples} names={names} />
      <LimitTable names={names} limits={value.limits} />
      <DenialTable
        denials={value.denials}
        caption="Denied in the last day, the newest first"
        empty="This caller was not denied in the last day."
        isOfOne
      />
      {dialog === 'override' && (
        <OverrideDialog reference={reference} subject={value.subject} onClose={close} />
      )}
      {dialog === 'reset' && <ResetDialog reference={reference} subject={value.subject} onClose={close} />}
    </>
  )
}

function nameOf({ name, scope, subject }: LimitState, own: string): string {
  const whose = subject === own ? '' : ` of ${subject}`
  return `${name}${scope === 'global' ? '' : ` in ${scope}`}${whose}`
}

function useSamples(state: ShownSubject | null): readonly Sample[] {
  const [samples, setSamples] = useState<readonly Sample[]>([])
  useEffect(() => {
    if (state === null) return
    const remaining = new Map(
      state.limits.map(limit => [nameOf(limit, state.subject), limit.remaining / Math.max(1, limit.limit)]),
    )
    setSamples(last => [...last, { atMs: Date.now(), remaining }].slice(-KEPT_SAMPLES))
  }, [state])
  return samples
}

/** Only limits in use: the others would each add a line at the top and hide them. */
function LimitsOverTime({ samples, names }: { samples: readonly Sample[]; names: readonly string[] }) {
  const used = names.filter(name => samples.some(({ remaining }) => (remaining.get(name) ?? 1) < 1))
  const lines: Line[] = used.map((label, index) => ({
    label,
    colour: COLOURS[index % COLOURS.length] as string,
  }))
  const shape = used.join()
  const data = useMemo(
    (): uPlot.AlignedData => [
      samples.map(({ atMs }) => atMs / 1000),
      ...used.map(name => samples.map(({ remaining }) => remaining.get(name) ?? null)),
    ],
    [samples, shape],
  )
  if (used.length === 0) return null
  return (
    <LineChart
      title="Left of each limit in use"
      description="What is left of each limit over time; the table below has the stats"
      lines={lines}
      data={data}
      height={200}
      leastTop={1}
      format={percent}
      formatAxis={share => percent(share, 0)}
    />
  )
}

function LimitTable({ names, limits }: { names: readonly string[]; limits: readonly LimitState[] }) {
  return (
    <TablePanel
      caption="Limits"
      columns={[
        { name: 'limit' },
        { name: 'left', isNumber: true },
        { name: 'of', isNumber: true },
        { name: 'resets in', isNumber: true },
      ]}
      empty={limits.length === 0 ? 'This caller has used nothing.' : null}
    >
      {limits.map((limit, index) => (
        <tr key={names[index]}>
          <th scope="row">{names[index]}</th>
          <td class={limit.remaining === 0 ? 'number bad' : 'number'}>{number(limit.remaining)}</td>
          <td class="number">{number(limit.limit)}</td>
          <td class="number">{limit.resetAfterMs === 0 ? '' : duration(limit.resetAfterMs)}</td>
        </tr>
      ))}
    </TablePanel>
  )
}
