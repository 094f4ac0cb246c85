/**
 * Control and overrides in Redis: two hashes beside the limits. No request waits for them; each process reads them
 * a few times a second and keeps the last ones when Redis does not answer.
 */

import { encodeTenant } from '../../subject/key.js'
import { withinTime } from '../../time/within-time.js'
import {
  type ControlReading,
  type ControlStore,
  MAX_OVERRIDES,
  type StoredEntry,
  tooManyOverrides,
} from '../control-store.js'
import type { Beside } from './redis-remote.js'
import { integerOf, listOf, replyError, textOf, textsOf } from './reply.js'
import { type Script, scripts } from './scripts.gen.js'
import { lateReply } from './store-error.js'

interface Watcher {
  onChange(reading: Partial<ControlReading>): void
  onError(error: unknown): void
}

/** A change is seen within one pause and two calls, well within a second. */
const LOOK_EVERY_MS = 400
const GIVE_UP_AFTER_MS = 1_000
/** The name operators know; another prefix is another fleet. */
const CONTROL_KEY = 'rate-limit:control'
const DEFAULT_PREFIX = 'ratelimit'
const ENTRY = /^(\d{1,15}) (\d{1,15}) (.*)$/s
/** What the script reads of the switches. */
const FIELDS: readonly string[] = ['enabled', 'multiplier']

export function redisControl(options: Beside): ControlStore {
  const { prefix, tenant, service, timers } = options
  const controlKey = prefix === DEFAULT_PREFIX ? CONTROL_KEY : `${prefix}:control`
  const overridesKey = `${prefix}:overrides${tenant === '' ? '' : `:${encodeTenant(tenant)}`}`
  let known: { revision: string; entries: ReadonlyMap<string, StoredEntry> } = {
    revision: '',
    entries: new Map(),
  }
  const watchers = new Set<Watcher>()
  /** What all limiters of this process saw last, because one look serves them all; null while nobody watches. */
  let last: ControlReading | null = null
  /** Counts the times that somebody began or nobody was left to watch: a look of before tells nobody. */
  let watch = 0
  /** The changes made through this store. */
  let changes = 0
  let cancel = () => {}

  /** Only operators wait for these, so a connection in progress is awaited. */
  function run(script: Script, key: string, args: string[]): Promise<unknown> {
    const reply = options.call(script, [key], args, GIVE_UP_AFTER_MS)
    return withinTime(reply, GIVE_UP_AFTER_MS, timers.inBackground, lateReply)
  }

  async function readControl(fields: readonly string[] = []): Promise<Record<string, string>> {
    const reply = await run(scripts.control, controlKey, [...fields])
    return Object.fromEntries(pairsOf(textsOf(reply, 2 * FIELDS.length)))
  }

  async function overrides(action: 'read' | 'put' | 'remove', target = '', text = '', ttlMs = 0) {
    const args = [
      options.clockUs(),
      known.revision,
      action,
      target,
      text,
      String(ttlMs),
      String(MAX_OVERRIDES),
    ]
    const reply = listOf(await run(scripts.overrides, overridesKey, args), 3 + 2 * MAX_OVERRIDES)
    const nowMs = integerOf(reply[0], 0)
    const revision = textOf(reply[1])
    const wasThere = integerOf(reply[2], 0, 1) === 1
    const rest = textsOf(reply.slice(3), 2 * MAX_OVERRIDES)
    if (revision === 'full') throw tooManyOverrides()
    if (rest[0] !== 'same') known = { revision, entries: entriesOf(rest, known.entries) }
    return { stored: { entries: known.entries, nowMs, isMarked: known.revision !== '' }, wasThere }
  }

  async function read(): Promise<ControlReading> {
    const unread = (error: unknown) => (error instanceof Error ? error : new Error(String(error)))
    const before = changes
    const [control, found] = await Promise.all([
      readControl().catch(unread),
      overrides('read').then(({ stored }) => stored, unread),
    ])
    // A change was told of meanwhile, and this may be what was there before.
    if (before !== changes) return read()
    if (control instanceof Error && found instanceof Error) throw control
    return { control, overrides: found }
  }

  /** The reply to a change is the new state: a later failing read must not hide what was done. */
  function tellChange(reading: Partial<ControlReading>): void {
    changes++
    tell(reading)
  }

  function tell(reading: Partial<ControlReading>): void {
    for (const { onChange } of watchers) onChange(reading)
  }

  function start(): void {
    const mine = ++watch
    if (timers.start === undefined) void look(mine)
    else timers.start(() => void look(mine))
  }

  async function look(mine: number): Promise<void> {
    try {
      const reading = await read()
      if (mine !== watch) return
      last = reading
      tell(reading)
    } catch (error) {
      if (mine !== watch) return
      for (const { onError } of watchers) onError(error)
    }
    cancel = timers.inBackground(LOOK_EVERY_MS, () => void look(mine))
  }

  return {
    fleet: { prefix, tenant, service },
    read,
    async setControl(fields) {
      tellChange({ control: await readControl(Object.entries(fields).flat()) })
    },
    async putOverride(target, text, ttlMs) {
      const { stored } = await overrides('put', target, text, ttlMs)
      tellChange({ overrides: stored })
    },
    async removeOverride(target) {
      const { stored, wasThere } = await overrides('remove', target)
      tellChange({ overrides: stored })
      return wasThere
    },
    watch(onChange, onError) {
      const watcher = { onChange, onError }
      watchers.add(watcher)
      if (last !== null) onChange(last)
      if (watchers.size === 1) start()
      return () => {
        watchers.delete(watcher)
        if (watchers.size > 0) return
        watch++
        cancel()
        last = null
      }
    },
  }
}

/** An unchanged entry stays the same object, so that it need not be parsed again. */
function entriesOf(
  reply: readonly string[],
  before: ReadonlyMap<string, StoredEntry>,
): ReadonlyMap<string, StoredEntry> {
  if (reply.length % 2 !== 0) throw replyError('a target and an entry each', `${reply.length} values`)
  const entries = new Map<string, StoredEntry>()
  for (let index = 0; index + 1 < reply.length; index += 2) {
    const target = reply[index] as string
    const [, setAt, expiresAt, text = ''] = ENTRY.exec(reply[index + 1] as string) ?? []
    if (setAt === undefined) continue
    const entry = { text, setAtMs: Number(setAt), expiresAtMs: Number(expiresAt) }
    const known = before.get(target)
    entries.set(target, known !== undefined && isSame(known, entry) ? known : entry)
  }
  return entries
}

function isSame(one: StoredEntry, other: StoredEntry): boolean {
  return one.text === other.text && one.setAtMs === other.setAtMs && one.expiresAtMs === other.expiresAtMs
}

function pairsOf(flat: readonly string[]): [string, string][] {
  const isKnown = flat.every((text, index) => index % 2 === 1 || FIELDS.includes(text))
  if (flat.length % 2 !== 0 || !isKnown) throw replyError(`${FIELDS.join(' and ')} with a value each`, flat)
  const pairs: [string, string][] = []
  for (let index = 0; index < flat.length; index += 2)
    pairs.push([flat[index] as string, flat[index + 1] as string])
  return pairs
}
