/** The stats over HTTP: once, as a stream, and the history. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Caller, type Endpoint, RequestError, reads } from '../admin/endpoint.js'
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'
import type { Alert } from './alert-rules.js'
import { MAX_POINTS, RANGES, type Range } from './history.js'
import type { Stats } from './stats.js'
import { createStreamPermits } from './stream-permits.js'

const STEP_MS = 1_000
const RETRY_MS = 2_000
const MAX_DENIALS = 1_000
const DENIAL_FIELDS = ['policy', 'tier', 'rule', 'reference', 'requestId'] as const

export function statsEndpoints(stats: Stats): readonly Endpoint[] {
  const permits = createStreamPermits()

  function stream(caller: Caller): HttpAnswer {
    const leave = permits.enter(caller)
    return {
      status: 200,
      headers: [
        ['Content-Type', 'text/event-stream'],
        ['Cache-Control', 'no-store'],
        // A buffering proxy would show nothing at all.
        ['X-Accel-Buffering', 'no'],
      ],
      body: '',
      stream(res) {
        const stop = sendSnapshots(stats, res)
        res.once('close', () => {
          leave()
          stop()
        })
      },
      onUnsent: leave,
    }
  }

  return [
    { path: '/v1/stats', methods: { GET: reads(() => jsonAnswer(200, stats.snapshot())) } },
    { path: '/v1/stats/stream', methods: { GET: reads((_req, caller) => stream(caller)) } },
    {
      path: '/v1/stats/history',
      methods: {
        GET: reads(async req => {
          const range = queryOf(req).get('range')
          if (range !== null) return jsonAnswer(200, await stats.historyOf(rangeOf(range)))
          const seconds = wholeOf(queryOf(req), 'seconds', { least: 1, most: MAX_POINTS, usual: 300 })
          return jsonAnswer(200, { stepMs: STEP_MS, points: stats.history(seconds) })
        }),
      },
    },
    { path: '/v1/fleet', methods: { GET: reads(() => jsonAnswer(200, stats.fleet())) } },
    { path: '/v1/alerts', methods: { GET: reads(() => jsonAnswer(200, { alerts: stats.alerts() })) } },
    {
      path: '/v1/denials',
      methods: {
        GET: reads(req => {
          const query = queryOf(req)
          const limit = wholeOf(query, 'limit', { least: 1, most: MAX_DENIALS, usual: 100 })
          const asked = Object.fromEntries(DENIAL_FIELDS.map(name => [name, query.get(name) || null]))
          return jsonAnswer(200, { denials: stats.denials({ limit, ...asked }) })
        }),
      },
    },
  ]
}

/**
 * A slow client gets the next snapshot when it reads, and the alerts as they are then: nothing is queued for it.
 */
function sendSnapshots(stats: Stats, res: ServerResponse): () => void {
  res.write(`retry: ${RETRY_MS}\n\n`)
  let told = stats.alerts()
  const send = (snapshot: ReturnType<Stats['snapshot']>): void => {
    if (res.writableNeedDrain) return
    const alerts = stats.alerts()
    for (const alert of alerts.filter(one => !told.some(other => isSame(one, other)))) {
      res.write(`event: alert\ndata: ${JSON.stringify(alert)}\n\n`)
    }
    told = alerts
    res.write(`event: stats\nid: ${snapshot.atMs}\ndata: ${JSON.stringify(snapshot)}\n\n`)
  }
  send(stats.snapshot())
  return stats.onSnapshot(send)
}

/** Whether nothing but the value of an alert has changed. */
function isSame(one: Alert, other: Alert): boolean {
  return one.id === other.id && one.state === other.state && one.sinceMs === other.sinceMs
}

function rangeOf(text: string): Range {
  const range = RANGES.find(one => one === text)
  if (range !== undefined) return range
  throw new RequestError(400, { field: 'range', expected: `one of ${RANGES.join(', ')}` })
}

function queryOf(req: IncomingMessage): URLSearchParams {
  return new URL(req.url ?? '/', 'http://localhost').searchParams
}

interface Bounds {
  readonly least: number
  readonly most: number
  /** Used if it is left out. */
  readonly usual: number
}

function wholeOf(query: URLSearchParams, name: string, { least, most, usual }: Bounds): number {
  const text = query.get(name)
  if (text === null) return usual
  const value = Number(text)
  if (/^\d{1,9}$/.test(text) && value >= least && value <= most) return value
  throw new RequestError(400, { field: name, expected: `a whole number from ${least} to ${most}` })
}
