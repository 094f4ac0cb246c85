import { useEffect, useState } from 'preact/hooks'
import { getJson } from './api.js'

/** An answer that is fetched again every `everyMs`, and the last error if there was one. */
export interface Polled<T> {
  readonly value: T | null
  readonly error: string | null
  /** Asks at once. */
  refresh(): void
}

export function usePolled<T>(path: string, everyMs: number): Polled<T> {
  const [value, setValue] = useState<T | null>(null)
  const [error, setError] = useState<string | null>(null)
  const [round, setRound] = useState(0)
  useEffect(() => {
    const ending = new AbortController()
    async function ask(): Promise<void> {
      try {
        setValue(await getJson<T>(path, ending.signal))
        setError(null)
      } catch (failure) {
        if (!ending.signal.aborted) setError((failure as Error).message)
      }
    }
    void ask()
    const timer = setInterval(ask, everyMs)
    return () => {
      clearInterval(timer)
      ending.abort()
    }
  }, [path, everyMs, round])
  return { value, error, refresh: () => setRound(last => last + 1) }
}
