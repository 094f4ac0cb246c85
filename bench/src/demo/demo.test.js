import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))
const SECONDS = 6

/** Starts a demo. `running` lists every process it has started. */
function startDemo() {
  const mark = `RUN_OF_DEMO=${randomUUID()}`
  const [name = '', value] = mark.split('=')
  const child = spawn(process.execPath, [MAIN, '--seconds', String(SECONDS)], {
    env: { ...process.env, [name]: value },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      output += chunk
    })
  const ended = once(child, 'close')
  return {
    child,
    ended,
    output: () => output,
    /** @param {string} text */
    async until(text) {
      while (!output.includes(text) && child.exitCode === null) await sleep(20)
      expect(output).toContain(text)
    },
    async nothingIsLeft() {
      for (let waited = 0; waited < 200 && processesWith(mark).length > 0; waited++) await sleep(50)
      expect(processesWith(mark)).toEqual([])
    },
    running: () => processesWith(mark),
  }
}

/** Finds commands whose environment holds a text. @param {string} text */
function processesWith(text) {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && readOf(`/proc/${name}/environ`).includes(text))
    .map(name => readOf(`/proc/${name}/cmdline`).replaceAll('\0', ' '))
}

/** @param {string} path */
function readOf(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Returns the figures that a pattern finds in a text. @param {string} text @param {RegExp} pattern */
function figures(text, pattern) {
  const found = pattern.exec(text)
  expect(found, `${pattern} in:\n${text}`).not.toBe(null)
  return (found ?? []).slice(1).map(figure => Number(figure.replaceAll(',', '')))
}

describe.concurrent('npm run demo', () => {
  it('the demo sums up what was counted, ends by itself and leaves nothing running', async () => {
    const demo = startDemo()
    await demo.until('dashboard: http://127.0.0.1:')
    const dashboard = /dashboard: (\S+)/.exec(demo.output())?.[1] ?? ''
    expect(await (await fetch(dashboard)).text()).toContain('<title>')
    // Redis, three apps, two gateways and ourselves.
    expect(demo.running().length).toBeGreaterThanOrEqual(7)

    const [code] = await demo.ended
    const text = demo.output()
    expect(text).toContain('Redis FROZEN')
    const [asked, allowed, denied, lost] = figures(
      text,
      /([\d,]+) requests: ([\d,]+) allowed, ([\d,]+) denied with 429, ([\d,]+) lost/,
    )
    expect([asked, lost]).toEqual([SECONDS * (4 + 4 + 3 + 3 + 150 + 60), 0])
    expect(Number(allowed) + Number(denied)).toBe(asked)
    expect(figures(text, /answered [\d,]+ \+ [\d,]+ \+ [\d,]+ = ([\d,]+)\./)).toEqual([allowed])
    const [came, answered] = figures(text, /([\d,]+) requests came in that time, ([\d,]+) were answered/)
    expect(answered).toBeGreaterThan(0)
    expect(came).toBeGreaterThanOrEqual(Number(answered))
    expect(text.match(/✓/g)).toHaveLength(5)
    expect(code).toBe(0)
    await demo.nothingIsLeft()
  }, 60_000)

  it('the demo leaves nothing running when it is interrupted, also while Redis is frozen', async () => {
    const demo = startDemo()
    await demo.until('Redis FROZEN')
    demo.child.kill('SIGINT')
    const [code] = await demo.ended
    expect(code).toBe(130)
    await demo.nothingIsLeft()
  }, 60_000)

  it('the demo leaves nothing running when it is killed', async () => {
    const demo = startDemo()
    await demo.until('dashboard:')
    demo.child.kill('SIGKILL')
    await demo.ended
    await demo.nothingIsLeft()
  }, 60_000)
})
