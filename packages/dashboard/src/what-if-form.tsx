import { useState } from 'preact/hooks'
import { sendJson } from './api.js'
import { number, percent } from './format.js'
import type { WhatIf } from './snapshot.js'
import { useAction } from './use-action.js'

/** Other numbers for a policy, tried on the arrivals of a sample of callers. Changes nothing. */
export function WhatIfForm() {
  const [policy, setPolicy] = useState('')
  const [limit, setLimit] = useState('100')
  const [window, setWindow] = useState('1m')
  const [result, setResult] = useState<WhatIf | null>(null)
  const action = useAction()
  const ask = (): Promise<boolean> =>
    action.run(async () => {
      const limits = [{ algorithm: 'sliding-window-log', limit: Number(limit), window }]
      setResult(await sendJson<WhatIf>('POST', 'v1/whatif', { policy, limits }))
    })
  return (
    <section class="panel">
      <h3>What other numbers would do</h3>
      <form
        onSubmit={event => {
          event.preventDefault()
          void ask()
        }}
      >
        <label>
          Policy
          <input required value={policy} onInput={event => setPolicy(event.currentTarget.value)} />
        </label>
        <label>
          Requests
          <input
            type="number"
            min="0"
            required
            value={limit}
            onInput={event => setLimit(event.currentTarget.value)}
          />
        </label>
        <label>
          In any
          <input required value={window} onInput={event => setWindow(event.currentTarget.value)} />
        </label>
        <button type="submit" disabled={action.isBusy}>
          Try
        </button>
      </form>
      {action.error !== null && (
        <p role="alert" class="bad">
          {action.error}
        </p>
      )}
      {result !== null && <Result result={result} />}
    </section>
  )
}

function Result({ result: { sample, actual, whatIf } }: { result: WhatIf }) {
  return (
    <p aria-live="polite">
      Of {number(sample.requests)} requests by {number(sample.subjects)} callers (a sample of{' '}
      {percent(sample.share)}), <strong>{number(whatIf.denied)}</strong> would have been denied:{' '}
      {percent(whatIf.rate)}, give or take ({percent(whatIf.rateLow)} to {percent(whatIf.rateHigh)}, 95 times
      in 100). {number(actual.denied)} were.
    </p>
  )
}
