/** The last second of a whole fleet, merged from the reports of its processes in the store. */
import type { FleetReading, ProcessReport, Report, StatisticsStore } from 'headgate/internal'
import { mergeReports } from './merge-reports.js'

const UNSAID = {
  ...{ unlistedAtMost: 0, sampledOneIn: 1, shadow: {}, candidates: {} },
  shadowCallers: { deniedCallers: [], unlistedAtMost: 0, sampledOneIn: 1 },
}

/** Takes each report and each denial once, however often they are read. */
export class FleetSeconds {
  /** By process, the last report seen. */
  private seen = new Map<string, number>()
  private cursor = ''

  constructor(private readonly store: StatisticsStore) {}

  async next(): Promise<{ readonly reading: FleetReading; readonly report: Report }> {
    const reading = await this.store.read(this.cursor)
    this.cursor = reading.cursor
    const fresh = reading.processes.filter(({ id, sequence }) => (this.seen.get(id) ?? 0) < sequence)
    this.seen = new Map(reading.processes.map(({ id, sequence }) => [id, sequence]))
    const { denials } = reading
    return { reading, report: { ...mergeReports(fresh.map(complete)), denials } }
  }
}

/** A report of an earlier version says less. */
function complete(report: ProcessReport): ProcessReport {
  return { ...UNSAID, ...report }
}
