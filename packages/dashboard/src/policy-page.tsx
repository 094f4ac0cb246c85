import type { Snapshot } from './answers.js'
import { namesOf } from './charged-to.js'
import { ExplainForm } from './explain-form.js'
import { WhatIfForm } from './what-if-form.js'

/** Shows what the policy file does to a request, and what other numbers would do. */
export function PolicyPage({ snapshot }: { snapshot: Snapshot }) {
  return (
    <>
      <h2>Policy</h2>
      <div class="columns">
        <ExplainForm />
        <WhatIfForm names={namesOf(snapshot.byPolicy, snapshot.byTier)} />
      </div>
    </>
  )
}
