import { expect, it } from 'vitest'
import type { ControlReading, ControlStore } from '../store/control-store.js'
import { manualClock } from '../testing/manual-clock.js'
import { createOperators } from './operators.js'
import { OverrideCache } from './override-cache.js'

it('limits that were switched off in a store that lost it are on again after five minutes, unless confirmed', async () => {
  const clock = manualClock()
  let fields: Record<string, string> = { enabled: 'false', multiplier: '2' }
  let look: (reading: Partial<ControlReading>) => void = () => {}
  const read = (): ControlReading => ({
    control: { ...fields },
    overrides: { entries: new Map(), nowMs: clock.unixMs(), isMarked: false },
  })
  const store: ControlStore = {
    read,
    setControl(changed) {
      fields = { ...fields, ...changed }
      look({ control: fields })
    },
    putOverride() {},
    removeOverride: () => false,
    watch(onChange) {
      look = onChange
      onChange(read())
      return () => {}
    },
  }
  const warnings: string[] = []
  const { control } = createOperators({
    store,
    nameSubject: String,
    active: () => undefined as never,
    concerned: () => ({ levels: [], otherRules: new Map(), otherPolicies: new Map() }),
    onControl: () => {},
    overrides: new OverrideCache(
      clock,
      () => null,
      () => {},
      () => {},
    ),
    warn: line => warnings.push(line),
    clock,
  })
  expect(control.get()).toEqual({ enabled: false, multiplier: 2 })

  fields = {}
  look(read())
  expect(control.get()).toEqual({ enabled: false, multiplier: 2 })
  clock.advanceMs(299_000)
  look(read())
  expect(control.get().enabled).toBe(false)
  clock.advanceMs(1_000)
  look(read())
  expect(control.get()).toEqual({ enabled: true, multiplier: 2 })
  expect(warnings.some(line => line.includes('on again'))).toBe(true)
  expect(control.lost()).toMatchObject({ control: { enabled: true, multiplier: 2 } })

  await control.set({ enabled: false })
  expect(fields).toEqual({ enabled: 'false', multiplier: '2' })
  expect(control.lost()).toBeNull()
  fields = {}
  look(read())
  await control.restore()
  clock.advanceMs(600_000)
  look(read())
  expect(control.get()).toEqual({ enabled: false, multiplier: 2 })
})
