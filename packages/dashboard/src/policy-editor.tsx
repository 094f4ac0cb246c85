/** Edits a policy file on trial. Nothing goes live from here: what is tried can be downloaded, or proposed. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { PolicyReplay, TriedPolicy } from './answers.js'
import { getJson, sendJson } from './api.js'
import { Field } from './field.js'
import { instant, number, percent } from './format.js'
import { useMayChange } from './role.js'
import { SubjectLink } from './subject-link.js'
import { TablePanel } from './table-panel.js'
import { useAction } from './use-action.js'

interface Loaded {
  readonly fileName: string
  readonly text: string
}

interface Tried extends TriedPolicy {
  readonly text: string
}

const NO_FILE: Loaded = { fileName: 'headgate.yaml', text: '' }

export function PolicyEditor() {
  const { loaded, text, setText } = useFile()
  const [line, setLine] = useState('GET /')
  const [subject, setSubject] = useState('ip:192.0.2.1')
  const [tried, setTried] = useState<Tried | null>(null)
  const area = useRef<HTMLTextAreaElement>(null)
  const action = useAction()
  const check = async (): Promise<void> => {
    const [method, path] = line.trim().split(/\s+/)
    const request = { method, path, subject: subject.trim().split(/\s+/) }
    const asked = { text, fileName: loaded.fileName, request }
    setTried({ ...(await sendJson<TriedPolicy>('POST', 'v1/policy/try', asked)), text })
  }
  const goTo = (at: number): void => {
    const start =
      text
        .split('\n')
        .slice(0, at - 1)
        .join('\n').length + (at > 1 ? 1 : 0)
    area.current?.focus()
    area.current?.setSelectionRange(
      start,
      text.indexOf('\n', start) < 0 ? text.length : text.indexOf('\n', start),
    )
  }
  const isChecked = tried !== null && tried.text === text
  return (
    <section class="panel editor" aria-labelledby="editor-title">
      <div class="chart-head">
        <h3 id="editor-title">Try another file</h3>
        <span class="soft">{loaded.fileName}; nothing is saved or enforced from here</span>
      </div>
      <form
        class="columns"
        onSubmit={event => {
          event.preventDefault()
          void action.run(check)
        }}
      >
        <label class="wide">
          Policy file
          <textarea
            ref={area}
            rows={22}
            spellcheck={false}
            autocomplete="off"
            value={text}
            onInput={event => setText(event.currentTarget.value)}
          />
        </label>
        <div class="side">
          <Field label="Explain a request" value={line} onValue={setLine} />
          <Field label="Who asks, the most specific first" value={subject} onValue={setSubject} />
          <div class="buttons">
            <button type="submit" disabled={action.isBusy || text.trim() === ''}>
              {action.isBusy ? 'Checking …' : 'Check'}
            </button>
            {text !== loaded.text && (
              <button type="button" class="quiet" onClick={() => setText(loaded.text)}>
                Start over
              </button>
            )}
          </div>
          {action.error !== null && (
            <p role="alert" class="bad">
              {action.error}
            </p>
          )}
          <div aria-live="polite" class="result">
            {tried !== null && <Result tried={tried} isCurrent={isChecked} onLine={goTo} />}
            {isChecked && tried.issues.length === 0 && <Save tried={tried} loaded={loaded} />}
          </div>
        </div>
      </form>
    </section>
  )
}

/** The file on disk, for those who may see it: its subjects may be keys. */
function useFile() {
  const mayRead = useMayChange()
  const [loaded, setLoaded] = useState(NO_FILE)
  const [text, setText] = useState('')
  useEffect(() => {
    if (!mayRead) return
    getJson<Loaded>('v1/policy/text').then(
      found => {
        setLoaded(found)
        setText(found.text)
      },
      // There is no file; one can be pasted.
      () => {},
    )
  }, [mayRead])
  return { loaded, text, setText }
}

interface ResultProps {
  readonly tried: Tried
  /** Whether the text has not changed since. */
  readonly isCurrent: boolean
  onLine(line: number): void
}

function Result({ tried: { issues, warnings, explanation, replay }, isCurrent, onLine }: ResultProps) {
  return (
    <>
      {!isCurrent && <p class="hint">The text has changed since; check it again.</p>}
      <p class={issues.length > 0 ? 'bad' : undefined}>
        <strong>
          {issues.length > 0
            ? `${issues.length} mistakes: this file cannot be used.`
            : 'The file can be used.'}
        </strong>
      </p>
      {[...issues, ...warnings].length > 0 && (
        <ul class="plain">
          {[...issues, ...warnings].map(({ line, path, message }, index) => (
            <li key={`${path} ${index}`}>
              {line !== null && (
                <button type="button" class="quiet small" onClick={() => onLine(line)}>
                  line {line}
                </button>
              )}{' '}
              {message}
            </li>
          ))}
        </ul>
      )}
      {replay !== null && <Replayed replay={replay} />}
      {explanation !== null && (
        // Scrollable, so it must be reachable by keyboard.
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus to be scrolled by keys
        <pre tabIndex={0}>{explanation}</pre>
      )}
    </>
  )
}

/** `This change would deny 3 more callers`, and who they are. */
function Replayed({ replay }: { replay: PolicyReplay }) {
  const { before, after, newlyDenied, newlyDeniedCount } = replay
  return (
    <>
      <p>
        <strong class={newlyDeniedCount > 0 ? 'bad' : undefined}>{replaySentence(replay)}</strong>
      </p>
      <dl class="pairs">
        <dt>Requests denied</dt>
        <dd>
          {number(before.denied)} now, {number(after.denied)} then
        </dd>
        <dt>Callers denied</dt>
        <dd>
          {number(before.callers)} now, {number(after.callers)} then
        </dd>
        <dt>Replayed</dt>
        <dd>
          {number(replay.requests)} requests of {number(replay.callers)} callers, {percent(replay.share)} of
          all, {instant(replay.fromMs)} to {instant(replay.toMs)}
        </dd>
      </dl>
      {newlyDenied.length > 0 && (
        <TablePanel
          caption="Newly denied"
          columns={[{ name: 'caller' }, { name: 'denied', isNumber: true }]}
          empty={null}
          isPlain
        >
          {newlyDenied.map(({ subject, reference, denied }) => (
            <tr key={reference}>
              <th scope="row">
                <SubjectLink subject={subject} reference={reference} />
              </th>
              <td class="number">{number(denied)}</td>
            </tr>
          ))}
        </TablePanel>
      )}
    </>
  )
}

function replaySentence({ newlyDeniedCount, noLongerDeniedCount }: PolicyReplay): string {
  const more = newlyDeniedCount === 0 ? 'no more callers' : `${callers(newlyDeniedCount)} more`
  const fewer = noLongerDeniedCount === 0 ? '' : `, and ${callers(noLongerDeniedCount)} no longer`
  return `This change would deny ${more}${fewer}.`
}

function callers(count: number): string {
  return count === 1 ? '1 caller' : `${number(count)} callers`
}

/** Saving is for reviews and deployments, so the page hands out a file and a text. */
function Save({ tried, loaded }: { tried: Tried; loaded: Loaded }) {
  const [isCopied, setCopied] = useState(false)
  if (tried.text === loaded.text) return null
  const proposal = proposalOf(tried, loaded.fileName)
  return (
    <div class="save">
      <div class="buttons">
        <button type="button" onClick={() => download(loaded.fileName, tried.text)}>
          Download {loaded.fileName}
        </button>
        <button
          type="button"
          class="quiet"
          onClick={async () => {
            await navigator.clipboard.writeText(proposal)
            setCopied(true)
          }}
        >
          {isCopied ? 'Copied' : 'Copy text of a pull request'}
        </button>
      </div>
      <label>
        Text of a pull request
        <textarea readOnly rows={8} value={proposal} />
      </label>
    </div>
  )
}

function proposalOf({ version, replay }: Tried, fileName: string): string {
  const lines = [
    `Change ${fileName} (version ${version})`,
    '',
    'Checked with Headgate:',
    '- the file can be used',
  ]
  if (replay === null) lines.push('- no requests in the last hour, so nothing was replayed')
  else {
    lines.push(
      `- ${replaySentence(replay)}`,
      `- requests denied: ${replay.before.denied} now, ${replay.after.denied} then`,
      `- replayed: ${replay.requests} requests of ${replay.callers} callers, ${percent(replay.share)} of all callers of the last hour`,
    )
  }
  return lines.join('\n')
}

function download(fileName: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const link = Object.assign(document.createElement('a'), { href: url, download: fileName })
  link.click()
  URL.revokeObjectURL(url)
}
