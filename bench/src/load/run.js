import { setTimeout as sleep } from 'node:timers/promises'
import { scheduleOf } from '../traffic/schedule.js'
import { castOf } from './cast.js'
import { figuresOf } from './figures.js'
import { startRig } from './rig.js'
import { slicesOf } from './slices.js'
import { verdictsOf } from './verdicts.js'

/** @typedef {{ gateway: number, redis: number, upstream: number, generator: number }} Cpu Cores in use. */
/** @typedef {Awaited<ReturnType<typeof runLoad>>} Outcome */

/** Long enough to compile the gateway's code; a tenth of a short run. */
const WARM_UP_MS = 6_000
/** If the generator is later than this, the run measured the generator. */
const MOST_LATE_MS = 5

/**
 * Makes one run: sends traffic on schedule, switches limits on and off, and reads the processor time every second.
 *
 * @param {import('./options.js').Options} options
 * @param {(step: string) => void} tell
 */
export async function runLoad(options, tell) {
  const cast = castOf(options)
  const { users, rate, connections } = options
  const warmUpMs = Math.min(WARM_UP_MS, options.seconds * 500)
  const lengthMs = warmUpMs + options.seconds * 1000
  const slices = slicesOf(warmUpMs, options.seconds * 1000)
  tell('starting Redis, an upstream and the gateway')
  const rig = await startRig(options.gateways, cast.limitPerSecond)
  try {
    tell(`opening ${connections} connections`)
    await rig.generator.request({ ports: rig.ports, users, rate, connections, lengthMs })
    const beganMs = performance.now()
    const traffic = rig.generator.receive()
    traffic.catch(() => {})
    const until = (/** @type {number} */ ms) => sleep(Math.max(0, beganMs + ms - performance.now()))
    const watching = watchCpu(rig, warmUpMs, options.seconds, until)
    for (const [index, slice] of slices.entries()) {
      tell(index === 0 ? 'warming up' : `${index} of ${slices.length} slices done`)
      await until(slice.startMs)
      await rig.setLimits(slice.isOn)
      // On a busy machine, that took a while.
      slice.startMs = performance.now() - beganMs
    }
    const cpu = await watching
    tell('waiting for the last answers')
    const seen = /** @type {import('./generator-process.js').Traffic} */ (await traffic)
    const { dueMs } = scheduleOf(cast.users, lengthMs)
    const figures = figuresOf({ dueMs, ...seen }, slices, { fromMs: warmUpMs, toMs: lengthMs })
    return {
      options,
      limitPerSecond: cast.limitPerSecond,
      abusers: cast.users.filter(({ isAbusive }) => isAbusive).length,
      slices: slices.map(slice => ({
        ...slice,
        startMs: slice.startMs - warmUpMs,
        endMs: slice.endMs - warmUpMs,
      })),
      figures,
      cpu,
      fewestOpen: seen.fewestOpen,
      generatorWasLate: figures.late.p99Ms > MOST_LATE_MS,
      verdicts: verdictsOf(figures, seen, { connections, fewestOpen: seen.fewestOpen }),
    }
  } finally {
    await rig.stop()
  }
}

/**
 * @param {import('./rig.js').Rig} rig @param {number} fromMs @param {number} seconds @param {(ms: number) => Promise<void>} until
 * @returns {Promise<Cpu[]>} For each second.
 */
async function watchCpu(rig, fromMs, seconds, until) {
  /** @type {{ atMs: number, used: Cpu }[]} */
  const samples = []
  for (let second = 0; second <= seconds; second++) {
    await until(fromMs + second * 1000)
    samples.push({ atMs: performance.now(), used: rig.cpuSeconds() })
  }
  return samples.slice(1).map(({ atMs, used }, index) => {
    const before = /** @type {typeof samples[number]} */ (samples[index])
    const cores = (/** @type {keyof Cpu} */ who) =>
      ((used[who] - before.used[who]) / (atMs - before.atMs)) * 1000
    return {
      gateway: cores('gateway'),
      redis: cores('redis'),
      upstream: cores('upstream'),
      generator: cores('generator'),
    }
  })
}
