/** Gives a caller other limits for a while: its own, or those of a rule, and shows them now and after. */
import { useEffect, useState } from 'preact/hooks'
import type { OverrideEffect, ShownSubject } from './answers.js'
import { sendJson } from './api.js'
import { ConfirmDialog } from './dialog.js'
import { Field } from './field.js'
import type { AboutCaller } from './reset-dialog.js'
import { usePolled } from './use-polled.js'

const DURATIONS = ['10m', '1h', '6h', '1d', '7d']
/** The parts of a policy file that are no rules. */
const NO_RULES = ['default', 'subjects', 'asked', 'global']
/** The policy of all tiers, whose numbers are those of a minute, an hour and a day. */
const TIER = 'tier'
const SPANS = ['minute', 'hour', 'day', 'month']
const EVERY_MS = 10_000
const TYPING_MS = 250

interface Place {
  /** Null: the caller's own limits, where no rule has any. */
  readonly rule: string | null
  readonly policy: string
  /** The limits of the policy by id. */
  readonly limits: ReadonlyMap<string, number>
}

export function OverrideDialog({ reference, subject, onClose }: AboutCaller) {
  const path = `v1/subjects/${encodeURIComponent(reference)}`
  const { value, error } = usePolled<ShownSubject>(path, EVERY_MS)
  const [rule, setRule] = useState('')
  const [tier, setTier] = useState('')
  const [numbers, setNumbers] = useState<Readonly<Record<string, string>>>({})
  const [ttl, setTtl] = useState('1h')
  const [reason, setReason] = useState('')
  const places = value === null ? [] : placesOf(value)
  const place = places.find(one => (one.rule ?? '') === rule) ?? places[0]
  const fields = place === undefined ? [] : place.policy === TIER ? SPANS : [...place.limits.keys()]
  const given = fields.flatMap(name => {
    const text = numbers[name] ?? ''
    return text === '' ? [] : [[name, Number(text)] as const]
  })
  const replacement =
    tier === '' ? { [place?.policy === TIER ? 'numbers' : 'limits']: Object.fromEntries(given) } : { tier }
  const asked = { subject: reference, ...(place?.rule != null && { rule: place.rule }), ...replacement }
  const isAsked = tier !== '' || given.length > 0
  return (
    <ConfirmDialog
      title={`Override for ${subject}`}
      confirm="Set override"
      onClose={onClose}
      onConfirm={async () => {
        await sendJson('PUT', 'v1/overrides', { ...asked, ttl, reason, by: 'dashboard' })
      }}
    >
      {error !== null && <p class="bad">{error}</p>}
      <label>
        Where
        <select
          value={rule}
          onChange={event => {
            setRule(event.currentTarget.value)
            setNumbers({})
          }}
        >
          {places.map(one => (
            <option key={one.rule} value={one.rule ?? ''}>
              {one.rule === null ? 'its own limits' : `rule ${one.rule}`}
            </option>
          ))}
        </select>
      </label>
      {tier === '' &&
        fields.map(name => (
          <Field
            key={name}
            label={place?.policy === TIER ? `Requests a ${name}` : name}
            type="number"
            placeholder={String(place?.limits.get(name) ?? 'stays')}
            isRequired={false}
            value={numbers[name] ?? ''}
            onValue={text => setNumbers({ ...numbers, [name]: text })}
          />
        ))}
      <Field label="Or another tier" value={tier} isRequired={false} onValue={setTier} />
      <Effect asked={isAsked ? JSON.stringify(asked) : null} />
      <label>
        For
        <select value={ttl} onChange={event => setTtl(event.currentTarget.value)}>
          {DURATIONS.map(text => (
            <option key={text}>{text}</option>
          ))}
        </select>
      </label>
      <Field label="Reason" value={reason} onValue={setReason} />
    </ConfirmDialog>
  )
}

/** The limits now and after, or why there would be none. */
function Effect({ asked }: { asked: string | null }) {
  const [effect, setEffect] = useState<OverrideEffect | string | null>(null)
  useEffect(() => {
    if (asked === null) return setEffect(null)
    let isCurrent = true
    const timer = setTimeout(async () => {
      const found = await sendJson<OverrideEffect>('POST', 'v1/overrides/preview', JSON.parse(asked)).catch(
        (failure: Error) => failure.message,
      )
      if (isCurrent) setEffect(found)
    }, TYPING_MS)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [asked])
  if (effect === null) return <p class="hint">What is left empty stays as it is.</p>
  if (typeof effect === 'string') return <p class="bad">{effect}</p>
  const { changes, unchanged } = effect
  return (
    <div aria-live="polite" class="effect">
      <dl class="pairs">
        {changes.map(({ rule, policy, tier, now, after }) => (
          <>
            <dt>
              {tier === null ? policy : `tier ${tier}`}, by {rule}
            </dt>
            <dd>
              {now.join(', ') || 'unlimited'} → <strong>{after.join(', ') || 'unlimited'}</strong>
            </dd>
          </>
        ))}
      </dl>
      {unchanged.length > 0 && <p class="hint">Unchanged: the rules {unchanged.join(', ')}.</p>}
    </div>
  )
}

/** Where the caller has limits: its own first, then the rules, each with its limits. */
function placesOf({ limits, subject }: ShownSubject): readonly Place[] {
  const places = new Map<string, Place>()
  for (const limit of limits) {
    if (limit.subject !== subject || limit.rule === 'asked') continue
    const [policy = '', id = ''] = limit.name.split('.')
    const rule = NO_RULES.includes(limit.rule) ? null : limit.rule
    const known = places.get(rule ?? '')?.limits ?? []
    places.set(rule ?? '', { rule, policy, limits: new Map([...known, [id, limit.limit]]) })
  }
  return [...places.values()].sort((one, other) => Number(one.rule !== null) - Number(other.rule !== null))
}
