// Loaded before anything else with --import: every clock of this process is off by HEADGATE_CLOCK_SHIFT_MS.
const shiftMs = Number(process.env.HEADGATE_CLOCK_SHIFT_MS)
const RealDate = Date
const realNow = performance.now.bind(performance)
const realOrigin = performance.timeOrigin

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + shiftMs)
    else super(...args)
  }

  static now() {
    return RealDate.now() + shiftMs
  }
}
Object.defineProperty(performance, 'now', { value: () => realNow() + shiftMs })
Object.defineProperty(performance, 'timeOrigin', { value: realOrigin + shiftMs })
