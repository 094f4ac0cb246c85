/** Finds a caller by anything an operator has of it. What was typed may be a key, so it is in no address. */
import { useState } from 'preact/hooks'
import type { FoundSubject } from './answers.js'
import { sendJson } from './api.js'
import { instant, number } from './format.js'
import { linkTo } from './route.js'
import { SubjectLink } from './subject-link.js'
import { TablePanel } from './table-panel.js'
import { useAction } from './use-action.js'

export function FindForm({ onFound }: { onFound(matches: readonly FoundSubject[]): void }) {
  const [text, setText] = useState('')
  const action = useAction()
  const find = async (): Promise<void> => {
    const { matches } = await sendJson<{ matches: FoundSubject[] }>('POST', 'v1/find', { text })
    onFound(matches)
    const [only] = matches
    location.hash =
      matches.length === 1 && only !== undefined ? linkTo('subject', only.reference) : linkTo('find')
    setText('')
  }
  return (
    <search>
      <form
        onSubmit={event => {
          event.preventDefault()
          if (text.trim() !== '') void action.run(find)
        }}
      >
        <input
          type="search"
          aria-label="Find a caller"
          placeholder="Find: user:42, address, key, reference, request id"
          autocomplete="off"
          spellcheck={false}
          value={text}
          aria-invalid={action.error !== null}
          onInput={event => setText(event.currentTarget.value)}
        />
      </form>
      {action.error !== null && (
        <p role="alert" class="bad">
          {action.error}
        </p>
      )}
    </search>
  )
}

/** Shows whom a text may mean, if that is more than one. */
export function FindPage({ matches }: { matches: readonly FoundSubject[] }) {
  return (
    <>
      <h2>Found</h2>
      <TablePanel
        caption="Callers that may be meant"
        columns={[
          { name: 'caller' },
          { name: 'state' },
          { name: 'denied in the last day', isNumber: true },
          { name: 'last denied' },
          { name: 'request', isMinor: true },
        ]}
        empty={matches.length === 0 ? 'Type into the box above whom you are looking for.' : null}
      >
        {matches.map(({ subject, reference, isActive, overridden, denied, lastDenial }) => (
          <tr key={reference}>
            <th scope="row">
              <SubjectLink subject={subject} reference={reference} />
            </th>
            <td>
              {isActive === null ? 'unknown: Redis does not answer' : isActive ? 'active' : 'nothing used'}
              {overridden && <span class="tag">overridden</span>}
            </td>
            <td class={denied > 0 ? 'number bad' : 'number'}>{number(denied)}</td>
            <td class="time">{lastDenial === null ? '' : instant(lastDenial.atMs)}</td>
            <td class="minor wrap">
              {lastDenial?.path ? `${lastDenial.method ?? ''} ${lastDenial.path}` : ''}
            </td>
          </tr>
        ))}
      </TablePanel>
    </>
  )
}
