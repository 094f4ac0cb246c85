// Draws docs/assets/demo.svg: runs the demo on a terminal of its own, and turns what it shows into a moving picture.
// `node docs/demo-picture.mjs`, in half a minute.

import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TARGET = fileURLToPath(new URL('assets/demo.svg', import.meta.url))
const SECONDS = 20
/** Frames follow each other in the picture as they did on the screen. */
const FRAMES_PER_SECOND = 2
const [CELL, LINE, MARGIN] = [7.9, 17, 14]
const COLOURS = { 31: '#ff7b72', 32: '#7ee787', 33: '#e3b341', 36: '#79c0ff' }

/** Runs the demo in `script`, which gives it a terminal, and resolves to everything it wrote. */
function record() {
  const command = `node scripts/prepared.mjs bench/src/demo/main.js --seconds ${SECONDS} --no-open`
  const demo = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  demo.stdout.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  return new Promise((resolve, reject) => {
    demo.on('close', code =>
      code === 0 ? resolve(text) : reject(new Error(`the demo ended with exit code ${code}`)),
    )
  })
}

/** Every redrawing begins by moving the cursor up. */
function framesOf(text) {
  const drawn = text.slice(text.indexOf('␛[?25l'), text.indexOf('␛[?25h')).split(/␛\[\d+A/)
  const step = Math.round(drawn.length / SECONDS / FRAMES_PER_SECOND)
  return drawn
    .filter((_, index) => index % step === step - 1)
    .map(frame => frame.replaceAll('␛[2K', '').replace('␛[?25l', '').split(/\r?\n/).filter(isShown))
}

/** The address of the dashboard is another one every time. */
const isShown = line => !line.includes('dashboard') && !line.includes('[?25')

const escaped = text => text.replace(/[&<>]/g, character => `&#${character.charCodeAt(0)};`)

/** Turns a line with its colours into SVG. */
function lineOf(line, row) {
  let [colour, weight, opacity] = ['', '', '']
  let spans = ''
  for (const [, codes, words] of `␛[0m${line}`.matchAll(/␛\[([\d;]*)m([^␛]*)/g)) {
    for (const code of codes.split(';')) {
      if (code === '0' || code === '') [colour, weight, opacity] = ['', '', '']
      else if (code === '1') weight = ' font-weight="bold"'
      else if (code === '2') opacity = ' opacity=".6"'
      else if (code === '22') [weight, opacity] = ['', '']
      else if (code === '39') colour = ''
      else if (COLOURS[code]) colour = ` fill="${COLOURS[code]}"`
    }
    if (words !== '') spans += `<tspan${colour}${weight}${opacity}>${escaped(words)}</tspan>`
  }
  return `<text x="${MARGIN}" y="${MARGIN + LINE * (row + 1)}" xml:space="preserve">${spans}</text>`
}

/** Shows one frame after the other, for ever; a reader who wants no motion sees the one in which Redis is frozen. */
function svgOf(frames) {
  const width = Math.ceil(
    CELL * Math.max(...frames.flat().map(line => line.replace(/␛\[[\d;]*m/g, '').length)) + 2 * MARGIN,
  )
  const height = Math.max(...frames.map(lines => lines.length)) * LINE + 2 * MARGIN
  const share = 100 / frames.length
  const still = frames.findIndex(lines => lines.some(line => /frozen/i.test(line)))
  const groups = frames.map(
    (lines, index) =>
      `<g class="f${index === still ? ' s' : ''}" style="animation-delay:${(index / FRAMES_PER_SECOND).toFixed(1)}s">${lines.map(lineOf).join('')}</g>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>npm run demo: the limit holds while Redis is frozen</title>
<style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}
.f{visibility:hidden;animation:f ${frames.length / FRAMES_PER_SECOND}s step-end infinite}
@keyframes f{0%{visibility:visible}${share.toFixed(3)}%{visibility:hidden}100%{visibility:hidden}}
@media (prefers-reduced-motion:reduce){.f{animation:none}.s{visibility:visible}}
</style>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
${groups.join('\n')}
</svg>
`
}

// The escape character as one that can be seen.
const frames = framesOf((await record()).replaceAll('\x1b', '␛'))
writeFileSync(TARGET, svgOf(frames))
process.stdout.write(`docs/assets/demo.svg: ${frames.length} frames\n`)
