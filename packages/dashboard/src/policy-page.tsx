import { ExplainForm } from './explain-form.js'
import { WhatIfForm } from './what-if-form.js'

/** Shows what the policy file does to a request, and what other numbers would do. */
export function PolicyPage() {
  return (
    <>
      <h2>Policy</h2>
      <div class="columns">
        <ExplainForm />
        <WhatIfForm />
      </div>
    </>
  )
}
