import type { ArrivalSample } from 'headgate/internal'

export interface ArrivalCollector {
  /** Asks them, and resolves to the answers that arrive in time. */
  ask(workers: readonly number[]): Promise<readonly ArrivalSample[]>
  answered(worker: number, sample: ArrivalSample): void
}

const ANSWER_WITHIN_MS = 1_000

/**
 * Collects the workers' samples of arrivals. Questions to a worker that has not answered the last one share its
 * answer.
 */
export function createArrivalCollector(send: (worker: number) => void): ArrivalCollector {
  const open = new Map<
    number,
    { readonly answer: Promise<ArrivalSample | null>; deliver(sample: ArrivalSample | null): void }
  >()

  function askOne(worker: number): Promise<ArrivalSample | null> {
    const before = open.get(worker)
    if (before !== undefined) return before.answer
    let deliver: (sample: ArrivalSample | null) => void = () => {}
    const answer = new Promise<ArrivalSample | null>(resolve => {
      const timer = setTimeout(() => deliver(null), ANSWER_WITHIN_MS)
      deliver = sample => {
        clearTimeout(timer)
        open.delete(worker)
        resolve(sample)
      }
    })
    open.set(worker, { answer, deliver })
    send(worker)
    return answer
  }

  return {
    async ask(workers) {
      const answers = await Promise.all(workers.map(askOne))
      return answers.filter(answer => answer !== null)
    },
    answered: (worker, sample) => open.get(worker)?.deliver(sample),
  }
}
