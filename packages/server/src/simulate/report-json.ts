import type { ReplayResult } from './replay.js'
import type { ReportOptions } from './report-text.js'
import { subjectName } from './report-words.js'

/** Returns the outcome of a replay for scripts. */
export function jsonReport(outcome: ReplayResult, { top }: ReportOptions): object {
  const { requests, unread, outOfOrder, fromMs, toMs, trials, callers, suggested, differences } = outcome
  return {
    requests,
    unread,
    outOfOrder,
    from: requests === 0 ? null : new Date(fromMs).toISOString(),
    to: requests === 0 ? null : new Date(toMs).toISOString(),
    callers,
    suggested,
    files: trials.map(({ name, denied, deniedInShadow, byLimit, timeline, deniedCallers }) => ({
      file: name,
      denied,
      deniedInShadow,
      deniedCallers: deniedCallers.size,
      byLimit: Object.fromEntries(byLimit),
      callers: deniedCallers
        .top(top)
        .map(({ subject, ...counts }) => ({ subject: subjectName(subject), ...counts })),
      timeline: { stepMs: timeline.stepMs, steps: timeline.steps() },
    })),
    ...(differences !== null && { differences }),
  }
}
