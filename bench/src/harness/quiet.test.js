import { expect, it } from 'vitest'
import { Machine, noiseBetween } from './quiet.js'

const OWN = 100

/** Makes a machine whose readings come from a list; each look takes two seconds. @param {{ load?: number, ticks?: number, stealTicks?: number }[]} looks @param {boolean} [isNoisy] */
function machineOf(looks, isNoisy = false) {
  /** @type {string[]} */
  const said = []
  let [atMs, look, busyTicks, stealTicks] = [0, 0, 0, 0]
  const machine = new Machine({
    isNoisy,
    ownPid: OWN,
    tell: line => said.push(line),
    sleep: async ms => {
      const { ticks = 0, stealTicks: stolen = 0 } = looks[Math.min(look++, looks.length - 1)] ?? {}
      atMs += ms
      busyTicks += ticks
      stealTicks += stolen
    },
    read: () => ({
      atMs,
      load: looks[Math.min(Math.max(0, look - 1), looks.length - 1)]?.load ?? 0,
      stealTicks,
      processes: new Map([
        [OWN, { name: 'bench', parent: 1, ticks: atMs }],
        [OWN + 1, { name: 'redis-server', parent: OWN, ticks: atMs }],
        [2, { name: 'kthreadd', parent: 0, ticks: atMs }],
        [3, { name: 'ksoftirqd', parent: 2, ticks: atMs }],
        [7, { name: 'compiler', parent: 1, ticks: busyTicks }],
      ]),
    }),
  })
  return { machine, said }
}

it('a quiet machine is measured at once, whatever our own processes and the kernel use', async () => {
  const { machine, said } = machineOf([{ load: 0.3, ticks: 9 }])
  await machine.untilQuiet()
  expect(said).toEqual([])
  expect(machine.describe()).toBe('load before the run 0.30, stolen time 0.0 %, every cell quiet')
})

it('a busy one is waited for, and the reasons are named', async () => {
  const { machine, said } = machineOf([{ load: 2 }, { ticks: 100 }, { stealTicks: 40 }, {}])
  await machine.untilQuiet()
  expect(said).toEqual([
    'waiting for a quiet machine: the load is 2.00',
    'waiting for a quiet machine: compiler (7) takes 50 % of a core',
    'waiting for a quiet machine: the host takes 20 % of a core',
  ])
})

it('a machine that stays busy is not measured', async () => {
  const { machine, said } = machineOf([{ load: 5 }])
  await expect(machine.untilQuiet()).rejects.toThrow('not quiet: the load is 5.00. Nothing was measured')
  expect(said).toHaveLength(1)
})

it('the load that our own bench left does not count, and --noisy waits for nothing', async () => {
  await machineOf([{ load: 5 }]).machine.untilQuiet({ ourLoad: true })
  const { machine } = machineOf([{ load: 5, ticks: 100 }], true)
  await machine.untilQuiet()
  expect(machine.describe()).toContain('not watched')
})

/** Runs cells of two seconds each. @param {{ ticks?: number }[]} looks */
async function runCell(looks) {
  let [runs, atMs, busyTicks] = [0, 0, 0]
  const machine = new Machine({
    isNoisy: false,
    ownPid: OWN,
    read: () => ({
      atMs,
      load: 0,
      stealTicks: 0,
      processes: new Map([[7, { name: 'compiler', parent: 1, ticks: busyTicks }]]),
    }),
  })
  const result = await machine.cell('cell', async () => {
    busyTicks += looks[runs]?.ticks ?? 0
    atMs += 2_000
    return ++runs
  })
  return { result, noisy: machine.noisyCells }
}

it('what was measured beside another program is measured again', async () => {
  expect(await runCell([{ ticks: 100 }, {}])).toEqual({ result: 2, noisy: [] })
  expect(await runCell([{ ticks: 100 }, { ticks: 100 }, { ticks: 100 }])).toEqual({
    result: 3,
    noisy: ['cell (compiler (7) takes 50 % of a core)'],
  })
})

it('a program that began meanwhile counts from its start', () => {
  const before = { atMs: 0, load: 0, stealTicks: 0, processes: new Map() }
  const processes = new Map([[9, { name: 'new', parent: 1, ticks: 30 }]])
  expect(noiseBetween(before, { ...before, atMs: 1_000, processes }, OWN)).toEqual([
    'new (9) takes 30 % of a core',
  ])
})
