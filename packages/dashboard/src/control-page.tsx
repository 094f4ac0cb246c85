/** The switches of the fleet, overrides in force, and who changed what. */
import { useState } from 'preact/hooks'
import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'
import { instant, number } from './format.js'
import { overrideWords } from './override-words.js'
import type { Change, Override, Snapshot } from './snapshot.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 2_000

export function ControlPage({ snapshot: { control } }: { snapshot: Snapshot }) {
  const [asked, setAsked] = useState<'switch' | 'multiplier' | null>(null)
  const [multiplier, setMultiplier] = useState('1')
  const close = (): void => setAsked(null)
  return (
    <>
      <h2>Control</h2>
      <section class="panel" aria-labelledby="switch-title">
        <h3 id="switch-title">The whole fleet</h3>
        <dl class="pairs">
          <dt>Limits</dt>
          <dd class={control.enabled ? 'good' : 'bad'}>
            {control.enabled ? 'on' : 'off: every request passes'}
          </dd>
          <dt>Multiplier</dt>
          <dd>{number(control.multiplier)}</dd>
        </dl>
        <div class="buttons">
          <button type="button" onClick={() => setAsked('switch')}>
            {control.enabled ? 'Switch limits off' : 'Switch limits on'}
          </button>
          <button type="button" class="quiet" onClick={() => setAsked('multiplier')}>
            Change multiplier
          </button>
        </div>
      </section>
      <Overrides />
      <Changes />
      {asked === 'switch' && (
        <ConfirmDialog
          title={control.enabled ? 'Switch all limits off?' : 'Switch all limits on?'}
          confirm={control.enabled ? 'Switch off' : 'Switch on'}
          onClose={close}
          onConfirm={async () => void (await sendJson('PATCH', 'v1/control', { enabled: !control.enabled }))}
        >
          <p>
            {control.enabled
              ? 'Every process lets every request pass, within a second.'
              : 'Every process enforces its limits again, within a second.'}
          </p>
        </ConfirmDialog>
      )}
      {asked === 'multiplier' && (
        <ConfirmDialog
          title="Multiply all limits"
          confirm="Change"
          onClose={close}
          onConfirm={async () =>
            void (await sendJson('PATCH', 'v1/control', { multiplier: Number(multiplier) }))
          }
        >
          <label>
            Multiplier
            <input
              type="number"
              min="0"
              max="1000"
              step="any"
              required
              value={multiplier}
              onInput={event => setMultiplier(event.currentTarget.value)}
            />
          </label>
          <p>
            Limits, capacities and rates of every policy. 0 pauses throttling; nobody who is banned gets in.
          </p>
        </ConfirmDialog>
      )}
    </>
  )
}

function Overrides() {
  const { value, error, refresh } = usePolled<{ overrides: Override[] }>('v1/overrides', EVERY_MS)
  const [asked, setAsked] = useState<Override | null>(null)
  const nameOf = ({ subject, rule }: Override): string => subject ?? `rule ${rule}`
  return (
    <section class="panel">
      <table>
        <caption>Overrides in force</caption>
        <tbody>
          {value?.overrides.map(override => (
            <tr key={nameOf(override)}>
              <th scope="row">{nameOf(override)}</th>
              <td>{overrideWords(override)}</td>
              <td class="actions">
                <button type="button" class="quiet" onClick={() => setAsked(override)}>
                  Remove<span class="hidden"> {nameOf(override)}</span>
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {value?.overrides.length === 0 && <p class="empty">None.</p>}
      {error !== null && <p class="bad">{error}</p>}
      {asked !== null && (
        <ConfirmDialog
          title={`Remove the override for ${nameOf(asked)}?`}
          confirm="Remove"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            const target = asked.rule === undefined ? { subject: asked.subject } : { rule: asked.rule }
            await sendJson('DELETE', 'v1/overrides', target)
            refresh()
          }}
        >
          <p>The numbers of the policy file hold again, within a second.</p>
        </ConfirmDialog>
      )}
    </section>
  )
}

function Changes() {
  const { value, error } = usePolled<{ changes: Change[] }>('v1/changes', EVERY_MS)
  return (
    <section class="panel">
      <table>
        <caption>Who changed what</caption>
        <tbody>
          {value?.changes.map(({ atMs, by, what }, index) => (
            <tr key={`${atMs} ${index}`}>
              <td class="number">{instant(atMs)}</td>
              <th scope="row">{by ?? 'this machine'}</th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {value?.changes.length === 0 && <p class="empty">Nothing since this server started.</p>}
      {error !== null && <p class="bad">{error}</p>}
    </section>
  )
}
