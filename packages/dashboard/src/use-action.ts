import { useState } from 'preact/hooks'

/** Something a person does in the page: whether it is under way, and what came of it. */
export interface Action {
  readonly isBusy: boolean
  /** The last failure in words, or null. */
  readonly error: string | null
  /** Does it, unless it is under way. Resolves to whether it worked. */
  run(work: () => Promise<void>): Promise<boolean>
}

export function useAction(): Action {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<string | null>(null)
  return {
    isBusy,
    error,
    async run(work) {
      if (isBusy) return false
      setBusy(true)
      setError(null)
      try {
        await work()
        return true
      } catch (failure) {
        setError((failure as Error).message)
        return false
      } finally {
        setBusy(false)
      }
    },
  }
}
