/** The outcome of a replay for a terminal. */
import type { ReplayResult, Trial } from './replay.js'
import { counted, duration, instant, number, percent, remarks, subjectName } from './report-words.js'
import type { TimeStep } from './timeline.js'

const CHART_WIDTH = 60
const BARS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

export interface ReportOptions {
  /** How many callers are listed. */
  readonly top: number
}

export function textReport(outcome: ReplayResult, options: ReportOptions): string {
  const { requests, fromMs, toMs, trials, differences } = outcome
  if (requests === 0) return ['no request was found', ...remarks(outcome)].join('\n')
  const [first, second] = trials
  const compared =
    differences === null || first === undefined || second === undefined
      ? []
      : [
          '',
          `${first.name} alone denies ${number(differences.onlyFirst)}, ${second.name} alone ${number(differences.onlySecond)}`,
        ]
  return [
    `${counted(requests, 'request')} in ${duration(toMs - fromMs)}, from ${instant(fromMs)} to ${instant(toMs)} UTC`,
    ...trials.flatMap(trial => ['', ...trialLines(trial, requests, options)]),
    ...compared,
    ...suggestion(outcome),
    ...remarks(outcome).map(remark => `(${remark})`),
  ].join('\n')
}

function suggestion({ callers, suggested }: ReplayResult): readonly string[] {
  if (suggested.length === 0) return []
  const limits = suggested.map(
    ({ share, limitPerMinute }) =>
      `  ${number(limitPerMinute)} a minute would have denied at most ${share * 100} % of them`,
  )
  return ['', `a limit for each of ${counted(callers, 'caller')}, counted over any minute:`, ...limits]
}

function trialLines(trial: Trial, requests: number, { top }: ReportOptions): readonly string[] {
  const { name, denied, deniedInShadow, byLimit, timeline, deniedCallers } = trial
  const head = `${name} would have denied ${number(denied)} of them (${percent(denied, requests)})`
  const shadow =
    deniedInShadow === 0 ? [] : [`  and ${number(deniedInShadow)} more, if what is in shadow were enforced`]
  if (denied === 0) return [head, ...shadow]
  const limits = [...byLimit].sort(([, a], [, b]) => b - a)
  return [
    head,
    ...shadow,
    ...chart(timeline.steps(), timeline.stepMs),
    '',
    '  by limit',
    ...rows(limits.map(([limit, count]) => [limit, number(count), percent(count, denied)])),
    '',
    `  who was denied (${counted(deniedCallers.size, 'caller')} in all)`,
    ...rows(
      deniedCallers
        .top(top)
        .map(({ subject, denied: count, firstAtMs }) => [
          subjectName(subject),
          number(count),
          `first at ${instant(firstAtMs)}`,
        ]),
    ),
  ]
}

/** Charts requests and denials over time, each line scaled to its own highest step. */
function chart(steps: readonly TimeStep[], stepMs: number): readonly string[] {
  const columns = inColumns(steps, Math.min(CHART_WIDTH, steps.length))
  const peak = steps.reduce((highest, step) => (step.denied > highest.denied ? step : highest))
  return [
    '',
    `  requests ${line(columns.map(({ requests }) => requests))}`,
    `  denied   ${line(columns.map(({ denied }) => denied))}`,
    `  most in ${duration(stepMs)}: ${number(peak.denied)} of ${number(peak.requests)} denied from ${instant(peak.atMs)}`,
  ]
}

function inColumns(steps: readonly TimeStep[], count: number): readonly Omit<TimeStep, 'atMs'>[] {
  const columns = Array.from({ length: count }, () => ({ requests: 0, denied: 0 }))
  for (const [index, step] of steps.entries()) {
    const column = columns[Math.floor((index * count) / steps.length)] as { requests: number; denied: number }
    column.requests += step.requests
    column.denied += step.denied
  }
  return columns
}

function line(values: readonly number[]): string {
  const highest = Math.max(1, ...values)
  return values
    .map(value => (value === 0 ? ' ' : BARS[Math.ceil((value / highest) * BARS.length) - 1]))
    .join('')
}

/** Aligns columns: the first to the left, numbers to the right. */
function rows(cells: readonly (readonly [string, string, string])[]): readonly string[] {
  const widths = [0, 1].map(column => Math.max(0, ...cells.map(row => (row[column] as string).length)))
  return cells.map(
    ([name, count, rest]) => `    ${name.padEnd(widths[0] ?? 0)}  ${count.padStart(widths[1] ?? 0)}  ${rest}`,
  )
}
