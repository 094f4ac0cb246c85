import { useState } from 'preact/hooks'
import type { WhatIf } from './answers.js'
import { sendJson } from './api.js'
import { askedBy } from './charged-to.js'
import { Field } from './field.js'
import { FormPanel } from './form-panel.js'
import { number, percent } from './format.js'

/** Tries other limits for a policy on the arrivals of a sample of callers. Changes nothing. */
export function WhatIfForm({ names }: { names: readonly string[] }) {
  const [policy, setPolicy] = useState(names[0] ?? '')
  const [limit, setLimit] = useState('100')
  const [window, setWindow] = useState('1m')
  const [result, setResult] = useState<WhatIf | null>(null)
  const ask = async (): Promise<void> => {
    const limits = [{ algorithm: 'sliding-window-log', limit: Number(limit), window }]
    setResult(await sendJson<WhatIf>('POST', 'v1/whatif', { ...askedBy(policy), limits }))
  }
  return (
    <FormPanel
      title="What other numbers would do"
      hint="Plays the last hour of a random share of this server's callers again, with these numbers. Nothing is changed."
      submit="Try"
      onSubmit={ask}
      result={result !== null && <Result result={result} />}
    >
      <Field label="Policy, or tier and its name" value={policy} choices={names} onValue={setPolicy} />
      <div class="fields">
        <Field label="Requests" type="number" value={limit} onValue={setLimit} />
        <Field label="In any" value={window} placeholder="1m" onValue={setWindow} />
      </div>
    </FormPanel>
  )
}

function Result({ result: { sample, actual, whatIf } }: { result: WhatIf }) {
  return (
    <dl class="pairs result">
      <dt>Would have been denied</dt>
      <dd>
        <strong>{percent(whatIf.rate)}</strong>, {number(whatIf.denied)} requests of{' '}
        {number(whatIf.subjectsDenied)} callers
      </dd>
      <dt>Of all callers (95 % interval)</dt>
      <dd>
        {percent(whatIf.rateLow)} to {percent(whatIf.rateHigh)}
      </dd>
      <dt>Were denied</dt>
      <dd>
        {percent(actual.rate)}, {number(actual.denied)} requests
      </dd>
      <dt>Sample</dt>
      <dd>
        {number(sample.requests)} requests of {number(sample.subjects)} callers, {percent(sample.share)} of
        them
      </dd>
    </dl>
  )
}
