/** Live stats, and the state of the connection that brings them. */
import { useEffect, useState } from 'preact/hooks'
import type { Caller, Point, Snapshot } from './answers.js'
import { ApiError, getJson } from './api.js'
import { readEvents } from './event-stream.js'

export type Connection = 'connecting' | 'live' | 'lost' | 'token-needed' | 'forbidden'

export interface Live {
  readonly connection: Connection
  /** The last one heard, also while the connection is lost. */
  readonly snapshot: Snapshot | null
  readonly history: readonly Point[]
  /** Whose token it is; null until it is known. */
  readonly caller: Caller | null
}

const HISTORY_SECONDS = 900
const LATEST_SECONDS = 5
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 5_000

/** Follows the server and reconnects when it was away. Another `token` starts over. */
export function useLive(token: string | null): Live {
  const [live, setLive] = useState<Live>({
    connection: 'connecting',
    snapshot: null,
    history: [],
    caller: null,
  })
  useEffect(() => {
    const ending = new AbortController()
    follow(ending.signal, change => setLive(last => ({ ...last, ...change(last) })))
    return () => ending.abort()
  }, [token])
  return live
}

type Change = (last: Live) => Partial<Live>

async function follow(signal: AbortSignal, change: (change: Change) => void): Promise<void> {
  let retryMs = FIRST_RETRY_MS
  while (!signal.aborted) {
    try {
      const [points, caller] = await Promise.all([
        getHistory(HISTORY_SECONDS, signal),
        getJson<Caller>('v1/me', signal),
      ])
      change(() => ({ history: points, caller }))
      for await (const { name, data } of readEvents('v1/stats/stream', signal)) {
        if (name !== 'stats') continue
        retryMs = FIRST_RETRY_MS
        const snapshot = JSON.parse(data) as Snapshot
        const latest = await getHistory(LATEST_SECONDS, signal)
        change(({ history }) => ({ connection: 'live', snapshot, history: extended(history, latest) }))
      }
    } catch (error) {
      if (signal.aborted) return
      const connection = connectionAfter(error)
      change(() => ({ connection }))
      if (connection !== 'lost') return
    }
    change(() => ({ connection: 'lost' }))
    await pause(retryMs, signal)
    retryMs = Math.min(LAST_RETRY_MS, retryMs * 2)
  }
}

async function getHistory(seconds: number, signal: AbortSignal): Promise<readonly Point[]> {
  return (await getJson<{ points: Point[] }>(`v1/stats/history?seconds=${seconds}`, signal)).points
}

function connectionAfter(error: unknown): Connection {
  const status = error instanceof ApiError ? error.status : 0
  if (status === 401) return 'token-needed'
  return status === 403 ? 'forbidden' : 'lost'
}

/** Replaces seconds that were still running when they were fetched by the finished ones. */
function extended(history: readonly Point[], latest: readonly Point[]): readonly Point[] {
  const [first] = latest
  if (first === undefined) return history
  return [...history.filter(({ atMs }) => atMs < first.atMs), ...latest].slice(-HISTORY_SECONDS)
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
