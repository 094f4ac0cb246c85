import { useState } from 'preact/hooks'

/** An action of the user: whether it is under way, and how it ended. */
export interface Action {
  readonly isBusy: boolean
  /** The last failure in words, or null. */
  readonly error: string | null
  /** Runs the action unless it is under way. Resolves to whether it succeeded. */
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
