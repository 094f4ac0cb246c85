/** The switches of the fleet, overrides in force, and who changed what. */
import { useState } from 'preact/hooks'
import type { Override, ShownChanges, Snapshot } from './answers.js'
import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'
import { Field } from './field.js'
import { instant, number } from './format.js'
import { overrideWords } from './override-words.js'
import { useMayChange } from './role.js'
import { TablePanel } from './table-panel.js'
import { usePolled } from './use-polled.js'

const EVERY_MS = 2_000

export function ControlPage({ snapshot: { control } }: { snapshot: Snapshot }) {
  const [asked, setAsked] = useState<'switch' | 'multiplier' | null>(null)
  const mayChange = useMayChange()
  const [multiplier, setMultiplier] = useState('1')
  const close = (): void => setAsked(null)
  return (
    <>
      <h2>Control</h2>
      <div class="columns">
        <section class="panel" aria-labelledby="switch-title">
          <h3 id="switch-title">The whole fleet</h3>
          <dl class="pairs">
            <dt>Limits</dt>
            <dd class={control.enabled ? undefined : 'bad'}>
              {control.enabled ? 'on' : 'off: every request passes'}
            </dd>
            <dt>Multiplier</dt>
            <dd>{number(control.multiplier)}</dd>
          </dl>
          {mayChange && (
            <div class="buttons">
              <button type="button" class="quiet" onClick={() => setAsked('multiplier')}>
                Change multiplier
              </button>
              <button
                type="button"
                class={control.enabled ? 'quiet danger' : undefined}
                onClick={() => setAsked('switch')}
              >
                {control.enabled ? 'Switch limits off' : 'Switch limits on'}
              </button>
            </div>
          )}
        </section>
        <Overrides />
      </div>
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
          <Field label="Multiplier" type="number" value={multiplier} onValue={setMultiplier} />
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
  const overrides = value?.overrides ?? []
  const mayChange = useMayChange()
  return (
    <>
      <TablePanel
        caption="Overrides in force"
        isWide
        empty={
          overrides.length === 0
            ? (error ?? 'None. Set one beside a caller on the first page, or with headgate override set.')
            : null
        }
      >
        {overrides.map(override => (
          <tr key={nameOf(override)}>
            <th scope="row">{nameOf(override)}</th>
            <td class="wrap">{overrideWords(override)}</td>
            {mayChange && (
              <td class="actions">
                <button type="button" class="quiet" onClick={() => setAsked(override)}>
                  Remove<span class="hidden"> {nameOf(override)}</span>
                </button>
              </td>
            )}
          </tr>
        ))}
      </TablePanel>
      {asked !== null && (
        <ConfirmDialog
          title={`Remove the override for ${nameOf(asked)}?`}
          confirm="Remove"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            const target = {
              ...('subject' in asked && { subject: asked.subject }),
              ...(asked.rule !== undefined && { rule: asked.rule }),
            }
            await sendJson('DELETE', 'v1/overrides', target)
            refresh()
          }}
        >
          <p>The numbers of the policy file apply again within a second.</p>
        </ConfirmDialog>
      )}
    </>
  )
}

function nameOf(override: Override): string {
  const subject = 'subject' in override ? [override.subject] : []
  return [...subject, ...(override.rule === undefined ? [] : [`rule ${override.rule}`])].join(', ')
}

function Changes() {
  const { value, error } = usePolled<ShownChanges>('v1/changes', EVERY_MS)
  const { scope = 'process', changes = [] } = value ?? {}
  const whose = scope === 'fleet' ? 'through any server' : 'through this server since it started'
  return (
    <TablePanel
      caption={`Who changed what, ${whose}`}
      empty={changes.length === 0 ? (error ?? 'Nothing was changed yet.') : null}
    >
      {changes.map(({ atMs, by, what }, index) => (
        <tr key={`${atMs} ${index}`}>
          <td class="time">{instant(atMs)}</td>
          <th scope="row">{by ?? 'this machine'}</th>
          <td class="wrap">{what}</td>
        </tr>
      ))}
    </TablePanel>
  )
}
