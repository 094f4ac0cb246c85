/** Shows one caller: what is left of its quotas and limits, over time, and its denials. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import type { Override, ShownDenial, ShownSubject } from './answers.js'
import { sendJson } from './api.js'
import { BanDialog } from './ban-dialog.js'
import { DenialTable } from './denial-table.js'
import { duration, instant, number, percent } from './format.js'
import { type Line, LineChart } from './line-chart.js'
import { OverrideDialog } from './override-dialog.js'
import { overrideWords } from './override-words.js'
import { ResetDialog } from './reset-dialog.js'
import { useMayChange } from './role.js'
import { TablePanel } from './table-panel.js'
import { UsagePanel } from './usage-panel.js'
import { useAction } from './use-action.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 1_000
const KEPT_SAMPLES = 600
const COLOURS = ['--calm', '--fourth', '--third', '--soft']

type LimitState = ShownSubject['limits'][number]
type Sample = { readonly atMs: number; readonly remaining: ReadonlyMap<string, number> }

export function SubjectPage({ reference }: { reference: string }) {
  const path = `v1/subjects/${encodeURIComponent(reference)}`
  const { value, error, refresh } = usePolled<ShownSubject>(path, EVERY_MS)
  const [dialog, setDialog] = useState<'override' | 'reset' | 'ban' | null>(null)
  const change = useAction()
  const mayChange = useMayChange()
  const [revealed, setRevealed] = useState<string | null>(null)
  const samples = useSamples(value)
  const remove = async ({ rule, policy, ban }: Override): Promise<void> => {
    await sendJson('DELETE', 'v1/overrides', { subject: value?.reference, rule, policy, ban })
    refresh()
  }
  const reveal = async (): Promise<void> => {
    setRevealed((await sendJson<{ subject: string }>('POST', `${path}/reveal`, {})).subject)
  }
  const close = (): void => {
    setDialog(null)
    refresh()
  }
  if (value === null) return <p class="notice">{error ?? 'Looking …'}</p>
  const names = value.limits.map(limit => nameOf(limit, value.subject))
  return (
    <>
      <div class="page-head">
        <h2>{revealed ?? value.subject}</h2>
        <code class="soft">{value.reference}</code>
        {value.overrides.length > 0 && <span class="tag">overridden</span>}
        {mayChange && (
          <div class="buttons">
            {value.isRevealable && revealed === null && (
              <button type="button" class="quiet" onClick={() => change.run(reveal)}>
                Reveal
              </button>
            )}
            <button type="button" class="quiet" onClick={() => setDialog('override')}>
              Override
            </button>
            <button type="button" class="quiet" onClick={() => setDialog('reset')}>
              Reset
            </button>
            <button type="button" class="quiet danger" onClick={() => setDialog('ban')}>
              Ban
            </button>
          </div>
        )}
      </div>
      {error !== null && <p class="notice bad">{error}</p>}
      {value.overrides.map(override => (
        <p key={placeOf(override)} class="notice">
          {placeOf(override)}: {overrideWords(override)}{' '}
          {mayChange && (
            <button type="button" class="quiet" onClick={() => change.run(() => remove(override))}>
              Remove
            </button>
          )}
        </p>
      ))}
      {change.error !== null && (
        <p role="alert" class="notice bad">
          {change.error}
        </p>
      )}
      <div class="columns">
        <LastDenial denial={value.denials[0] ?? null} />
        <DeniedByHour counts={value.deniedByHour} />
      </div>
      <UsagePanel reference={reference} subject={value.subject} tier={value.tier} />
      <LimitTable names={names} limits={value.limits} />
      <LimitsOverTime samples={samples} names={names} />
      <DenialTable
        denials={value.denials}
        caption="Denied in the last day, the newest first"
        empty="This caller was not denied in the last day."
        isOfOne
      />
      {dialog === 'override' && (
        <OverrideDialog reference={reference} subject={value.subject} onClose={close} />
      )}
      {dialog === 'ban' && <BanDialog reference={reference} subject={value.subject} onClose={close} />}
      {dialog === 'reset' && <ResetDialog reference={reference} subject={value.subject} onClose={close} />}
    </>
  )
}

/** Where an override of a caller holds. */
function placeOf({ rule, policy, ban }: Override): string {
  if (ban !== undefined) return 'Everything'
  if (policy !== undefined) return `Policy ${policy}`
  return rule === undefined ? 'Its own limits' : `Rule ${rule}`
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
    // Four colours of lines that lie close together are not enough to tell them apart.
    isDashed: index % 2 === 1,
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
      caption="Limits now"
      columns={[
        { name: 'limit' },
        { name: 'rule', isMinor: true },
        { name: 'share', isUnseen: true, isMinor: true },
        { name: 'used', isNumber: true, isMinor: true },
        { name: 'left', isNumber: true },
        { name: 'of', isNumber: true },
        { name: 'resets in', isNumber: true },
      ]}
      empty={limits.length === 0 ? 'No limit applies to this caller.' : null}
    >
      {limits.map((limit, index) => (
        <tr key={`${names[index]} ${index}`}>
          <th scope="row">
            {names[index]} <BanStep ban={limit.ban} />
          </th>
          <td class="minor">{limit.rule}</td>
          <td class="minor share">
            <meter min={0} max={Math.max(1, limit.limit)} high={limit.limit * 0.9} value={limit.used}>
              {percent(limit.used / Math.max(1, limit.limit))}
            </meter>
          </td>
          <td class="number minor">{number(limit.used)}</td>
          <td class={limit.remaining === 0 ? 'number bad' : 'number'}>{number(limit.remaining)}</td>
          <td class="number">{number(limit.limit)}</td>
          <td class="number">{limit.resetAfterMs === 0 ? '' : duration(limit.resetAfterMs)}</td>
        </tr>
      ))}
    </TablePanel>
  )
}

/** Says at which step of a ban that grows the caller is. */
function BanStep({ ban }: { ban: LimitState['ban'] }) {
  if (ban === null || ban.level === 0) return null
  const step = `step ${ban.level} of ${ban.stepsMs.length}`
  return <span class="tag">{ban.bannedForMs > 0 ? `banned, ${step}` : `was banned, ${step}`}</span>
}

/** In the name of what an address pays for callers that anybody can make up: an override of the caller changes nothing there. */
const OF_ADDRESS = '/shared'

/** Says why the caller was denied last, in the words of the request and of the file. */
function LastDenial({ denial }: { denial: ShownDenial | null }) {
  return (
    <section class="panel" aria-labelledby="last-denial">
      <h3 id="last-denial">Last denied</h3>
      {denial === null ? (
        <p class="empty">Not in the last day.</p>
      ) : (
        <dl class="pairs">
          <dt>When</dt>
          <dd>
            {instant(denial.atMs)}, {duration(Date.now() - denial.atMs)} ago
          </dd>
          <dt>Request</dt>
          <dd>{denial.path === null ? 'not known' : `${denial.method ?? ''} ${denial.path}`}</dd>
          <dt>Limit</dt>
          <dd>
            {denial.limit ?? 'none could be asked'}
            {denial.limit?.includes(OF_ADDRESS) === true && (
              <span class="soft">, shared by all unverified callers at its address</span>
            )}
          </dd>
          <dt>Rule</dt>
          <dd>{denial.rule ?? 'none'}</dd>
          <dt>Reason</dt>
          <dd>
            {denial.reason}, decided by {denial.source}
          </dd>
          <dt>Retry after</dt>
          <dd>{denial.retryAfterMs === null ? 'never' : duration(denial.retryAfterMs)}</dd>
          {denial.requestId !== null && (
            <>
              <dt>Request id</dt>
              <dd>
                <code>{denial.requestId}</code>
              </dd>
            </>
          )}
        </dl>
      )}
    </section>
  )
}

const HOURS = 24

function DeniedByHour({ counts }: { counts: readonly number[] }) {
  const most = Math.max(1, ...counts)
  const total = counts.reduce((sum, count) => sum + count, 0)
  return (
    <section class="panel" aria-labelledby="denied-by-hour">
      <div class="chart-head">
        <h3 id="denied-by-hour">Denied in the last day</h3>
        <strong class={total > 0 ? 'bad' : undefined}>{number(total)}</strong>
      </div>
      <svg
        class="bars"
        viewBox={`0 0 ${HOURS} 10`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Denied by hour, the oldest first: ${counts.join(', ')}`}
      >
        {counts.map((count, hour) => {
          const height = count === 0 ? 0 : Math.max(0.4, (count / most) * 10)
          return <rect key={hour} x={hour + 0.1} width={0.8} y={10 - height} height={height} />
        })}
      </svg>
      <p class="axis">
        <span>24 h ago</span>
        <span>now</span>
      </p>
    </section>
  )
}
