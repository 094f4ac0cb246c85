import type { Family } from 'headgate/internal'

/** How often the gateway itself answered for one reason with one class of status, or closed a connection. */
export interface AnswerReading {
  readonly reason: string
  /** `4xx`, or `closed`. */
  readonly status: string
  readonly count: number
}

/** Counts what the gateway answered itself, without asking an upstream, and what it closed. */
export class GatewayAnswers {
  private readonly counts = new Map<string, AnswerReading>()

  /** A status of null means that the connection was closed without an answer. */
  add(reason: string, status: number | null, count = 1): void {
    const written = status === null ? 'closed' : `${Math.floor(status / 100)}xx`
    addTo(this.counts, { reason, status: written, count })
  }

  read(): readonly AnswerReading[] {
    return [...this.counts.values()]
  }
}

/** Adds up the readings of several processes. */
export function mergeAnswers(readings: readonly AnswerReading[]): readonly AnswerReading[] {
  const sums = new Map<string, AnswerReading>()
  for (const reading of readings) addTo(sums, reading)
  return [...sums.values()]
}

export function answerFamilies(readings: readonly AnswerReading[]): readonly Family[] {
  return [
    {
      name: 'rate_limit_gateway_answers_total',
      type: 'counter',
      labels: ['reason', 'status'],
      help: 'Requests the gateway answered itself and connections it closed, not because of a limit, by reason.',
      samples: readings.map(({ reason, status, count }) => ({ labels: { reason, status }, value: count })),
    },
  ]
}

function addTo(sums: Map<string, AnswerReading>, { reason, status, count }: AnswerReading): void {
  const key = `${reason} ${status}`
  sums.set(key, { reason, status, count: (sums.get(key)?.count ?? 0) + count })
}
