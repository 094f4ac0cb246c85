// The attacks on real servers, and the table attack -> outcome.
//   npm run proof -- hostile                     all of them, minutes; writes docs/reference/hostile.md
//   npm run proof -- hostile --only=framing   those with this in their name or their group's; writes nothing
//   npm run proof -- hostile --seed=42        the random choices of another run; printed at the start of every run
import { readFile, writeFile } from 'node:fs/promises'
import { register } from 'node:module'

register('../../../headgate/test/faults/ts-loader.mjs', import.meta.url)
const { groups } = await import('./registry.ts')
const { toMarkdown } = await import('./report.ts')

const DOCUMENT = new URL('../../../../docs/reference/hostile.md', import.meta.url)
const BEGIN = '<!-- hostile:begin (written by npm run proof -- hostile) -->'
const END = '<!-- hostile:end -->'

const given = Object.fromEntries(process.argv.slice(2).map(readArgument))
const seed = given.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given.seed)
if (!Number.isInteger(seed)) stop(`--seed: expected a whole number; got ${given.seed}`)
process.stderr.write(`seed ${seed}\n`)

const rows = []
for (const { title, attacks } of groups) {
  for (const { name, does, expected, run } of attacks) {
    if (given.only !== undefined && !`${title} ${name}`.includes(given.only)) continue
    process.stderr.write(`${title}: ${name} … `)
    const row = { group: title, attack: name, does, expected }
    try {
      rows.push({ ...row, outcome: await run({ seed, isShort: false }), held: true })
    } catch (error) {
      rows.push({ ...row, outcome: error.message.split('\n')[0], held: false })
    }
    const { outcome, held } = rows.at(-1)
    process.stderr.write(`${held ? 'held' : 'NOT HELD'}: ${outcome}\n`)
  }
}
if (rows.length === 0) stop(`--only: expected part of a name; got ${given.only}`)
const broken = rows.filter(({ held }) => !held)
console.log(toMarkdown(rows))
console.log(`\n${rows.length} attacks, ${broken.length} not held, seed ${seed}`)
if (given.only === undefined) await writeDocument()
process.exit(broken.length > 0 ? 1 : 0)

async function writeDocument() {
  const page = await readFile(DOCUMENT, 'utf8')
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin === -1 || end === -1) throw new Error('docs/reference/hostile.md: no place for the table')
  const about = `${rows.length} attacks on Node ${process.versions.node}, seed ${seed}; ${broken.length} not held.`
  const text = `${page.slice(0, begin + BEGIN.length)}\n\n${about}\n\n${toMarkdown(rows)}\n\n${page.slice(end)}`
  await writeFile(DOCUMENT, text)
}

function readArgument(argument) {
  const found = /^--(only|seed)=(.+)$/.exec(argument)
  if (found === null) stop(`expected --only= or --seed=; got ${argument}`)
  return [found[1], found[2]]
}

function stop(message) {
  console.error(message)
  process.exit(2)
}
