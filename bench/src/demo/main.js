/**
 * Two gateways with one Redis in front of three apps, well-behaved and abusive callers, and a Redis that
 * freezes midway. Ends by itself and leaves nothing running.
 *
 *   npm run demo                              about a minute
 *   npm run demo -- --seconds 300             longer, to look around in the dashboard: from 6 to 3600, otherwise 50
 *   npm run demo -- --seconds 12 --no-open    a short one that does not open a browser
 */
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { CLIENTS, WARM_UP } from './cast.js'
import { coloursFor, createPlainLines, createScreen } from './screen.js'
import { runTraffic, setUp } from './stage.js'
import { summaryText, verdicts } from './summary.js'
import { Tally } from './tally.js'

helpIfAsked(import.meta.url)

const [LEAST_SECONDS, MOST_SECONDS] = [6, 3_600]
const DRAW_EVERY_MS = 250
/** Redis freezes for five seconds, or for a quarter of the demo if that is less. */
const FREEZE_SECONDS = 5
const WARM_UP_SECONDS = 1.5

const { stdout } = process
const colours = coloursFor(stdout)
/** On Ctrl-C and SIGTERM, stops everything that was started and prints no summary. */
const interrupted = new AbortController()
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.once(signal, () => interrupted.abort())

function readOptions() {
  const { values } = parseArgs({
    options: { seconds: { type: 'string', default: '50' }, 'no-open': { type: 'boolean', default: false } },
  })
  const seconds = Number(values.seconds)
  if (!Number.isInteger(seconds) || seconds < LEAST_SECONDS || seconds > MOST_SECONDS)
    throw new Error(
      `--seconds: expected a whole number from ${LEAST_SECONDS} to ${MOST_SECONDS}, got ${values.seconds}`,
    )
  return { seconds, opensBrowser: !values['no-open'] }
}

/** @param {import('./stage.js').Stage} stage @param {number} seconds @returns {Promise<import('./summary.js').Result>} */
async function perform(stage, seconds) {
  const { signal } = interrupted
  await runTraffic(WARM_UP, stage.gatewayPorts, WARM_UP_SECONDS, () => {}, signal)
  const before = await stage.answered()
  const tally = new Tally(CLIENTS.length)
  const view = stdout.isTTY ? createScreen(stdout, colours, stage.dashboardUrl) : createPlainLines(stdout)
  /** @type {import('./screen.js').Moment['redis']} */
  let redis = 'answering'
  const beganMs = performance.now()
  const nowMs = () => performance.now() - beganMs
  const drawing = setInterval(() => {
    view.show({ second: nowMs() / 1000, seconds, redis, now: tally.justNow(nowMs()), all: tally.all() })
  }, DRAW_EVERY_MS)
  const traffic = runTraffic(CLIENTS, stage.gatewayPorts, seconds, sent => tally.add(sent), signal)
  try {
    await sleep(seconds * 450, undefined, { signal })
    const freeze = { beganMs: nowMs(), endedMs: 0 }
    stage.freeze()
    redis = 'frozen'
    await sleep(Math.min(FREEZE_SECONDS, seconds / 4) * 1000, undefined, { signal })
    freeze.endedMs = nowMs()
    stage.thaw()
    redis = 'thawed'
    await traffic
    return {
      seconds,
      all: tally.all(),
      frozen: tally.between(freeze.beganMs, freeze.endedMs),
      frozenSeconds: (freeze.endedMs - freeze.beganMs) / 1000,
      answeredInside: tally.answeredInside(freeze),
      apps: (await stage.answered()).map((count, app) => count - (before[app] ?? 0)),
    }
  } finally {
    clearInterval(drawing)
    view.end()
  }
}

async function demo() {
  const { seconds, opensBrowser } = readOptions()
  stdout.write(`\n${colours.bold('headgate')}: one limit for every caller, whatever happens to Redis\n\n`)
  const stage = await setUp(step => stdout.write(colours.dim(`  starting ${step}\n`)))
  try {
    stdout.write(`  dashboard: ${stage.dashboardUrl}\n\n`)
    if (opensBrowser) openBrowser(stage.dashboardUrl)
    const result = await perform(stage, seconds)
    stdout.write(`\n${summaryText(result, colours)}\n`)
    return Object.values(verdicts(result)).every(Boolean) ? 0 : 1
  } finally {
    await stage.takeDown()
    stdout.write(colours.dim('\n  Everything that was started has been stopped.\n'))
  }
}

/** Opens an address in a browser if somebody sits at this terminal. @param {string} url */
export function openBrowser(url) {
  const command = openerOf(process.platform)
  if (command === null || process.stdout.isTTY !== true) return
  // The demo goes on without a browser: the address is on the screen.
  spawn(command, [url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}

/** @param {NodeJS.Platform} platform */
function openerOf(platform) {
  if (platform === 'darwin') return 'open'
  const hasDisplay = Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY)
  return platform === 'linux' && hasDisplay ? 'xdg-open' : null
}

try {
  process.exitCode = await demo()
} catch (error) {
  const wasInterrupted = interrupted.signal.aborted
  if (!wasInterrupted) process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = wasInterrupted ? 130 : 1
}
