import type { ProcessStatistics, Report } from 'headgate/internal'
import type { Statistics } from 'headgate/metrics'
import { type AnswerReading, mergeAnswers } from '../metrics/gateway-answers.js'
import { mergeProcesses, type ProcessReading } from '../metrics/process-counts.js'
import { mergeTokens, type TokenReading } from '../metrics/token-counts.js'
import { mergeUpstreams, type UpstreamReading } from '../metrics/upstream-counts.js'
import { countsAlone, mergeReports, mergeStatistics } from '../observe/merge-reports.js'
import type { WorkerCounts } from './messages.js'

/** The counts of a process and its workers, as if they were one. */
export interface AllCounts {
  readonly statistics: Pick<Statistics, 'read' | 'onSecond'>
  upstreams(): readonly UpstreamReading[]
  answers(): readonly AnswerReading[]
  tokens(): readonly TokenReading[]
  /** Returns the figures of the workers, gone or not; none before the first has reported. */
  processes(): readonly ProcessReading[]
  /** Takes what a worker has counted since it began. */
  heard(worker: number, counts: WorkerCounts): void
  /** Takes what a worker has counted in a second. */
  passed(report: Report): void
  /** Keeps the counts of a worker that is gone: a counter never falls. */
  ended(worker: number): void
}

export function createAllCounts(own: Statistics): AllCounts {
  const live = new Map<number, WorkerCounts>()
  let gone: WorkerCounts | null = null
  /** By listener, the reports it has not received yet. */
  const waiting = new Set<Report[]>()

  const others = () => [...live.values(), ...(gone === null ? [] : [gone])]

  function read(): ProcessStatistics {
    return mergeStatistics([own.read(), ...others().map(({ statistics }) => statistics)])
  }

  return {
    statistics: {
      read,
      onSecond(listener) {
        const reports: Report[] = []
        waiting.add(reports)
        const stop = own.onSecond(report => {
          const all = [report, ...reports.splice(0)]
          listener({ ...mergeReports(all), denials: all.flatMap(({ denials }) => denials) })
        })
        return () => {
          waiting.delete(reports)
          stop()
        }
      },
    },
    upstreams: () => mergeUpstreams(others().flatMap(one => one.upstreams)),
    answers: () => mergeAnswers(others().flatMap(one => one.answers)),
    tokens: () => mergeTokens(others().flatMap(one => one.tokens)),
    processes: () => others().map(({ process }) => process),
    heard: (worker, counts) => void live.set(worker, counts),
    passed(report) {
      for (const reports of waiting) reports.push(report)
    },
    ended(worker) {
      const last = live.get(worker)
      if (last === undefined) return
      live.delete(worker)
      const process = { ...last.process, memoryBytes: 0 }
      const ended = { ...last, statistics: countsAlone(last.statistics), process }
      gone = gone === null ? ended : sumOf(gone, ended)
    },
  }
}

function sumOf(one: WorkerCounts, other: WorkerCounts): WorkerCounts {
  return {
    statistics: mergeStatistics([one.statistics, other.statistics]),
    upstreams: mergeUpstreams([...one.upstreams, ...other.upstreams]),
    answers: mergeAnswers([...one.answers, ...other.answers]),
    tokens: mergeTokens([...one.tokens, ...other.tokens]),
    process: mergeProcesses([one.process, other.process]),
  }
}
