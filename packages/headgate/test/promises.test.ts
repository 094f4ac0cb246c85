/** Checks that docs/reference/promises.md leads to tests and scripts that exist. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import workspace from '../../../package.json' with { type: 'json' }

const ROOT = new URL('../../../', import.meta.url)
const PAGE = new URL('docs/reference/promises.md', ROOT)

interface Proof {
  readonly number: string
  readonly file: string
  readonly scripts: readonly string[]
}

interface Row {
  readonly number: string
  readonly cells: readonly string[]
}

function rowsOf(page: string): Row[] {
  return page.split('\n').flatMap(line => {
    const [, number] = /^\| <a id="[rs]\d+"><\/a>([RS]\d+) \|/.exec(line) ?? []
    return number === undefined ? [] : [{ number, cells: line.slice(1, -1).split(' | ') }]
  })
}

/** Parses a cell, which is a list of `[shown](file), script`. */
function proofsOf({ number, cells }: Row): Proof[] {
  return (cells[3] ?? '').split('<br>').map(text => ({
    number,
    file: /\]\((?:\.\.\/)+([^)]+)\)/.exec(text)?.[1] ?? text,
    scripts: [...text.matchAll(/`npm run ([\w:]+)[^`]*`/g)].map(([, script = '']) => script),
  }))
}

const rows = rowsOf(readFileSync(PAGE, 'utf8'))
const proofs = rows.flatMap(proofsOf)

describe('the page of promises', () => {
  it('the page has a promise, a figure and a proof in every row, and no number twice', () => {
    const numbers = rows.map(({ number }) => number)
    expect(numbers.length).toBeGreaterThan(80)
    expect(new Set(numbers).size).toBe(numbers.length)
    expect(rows.filter(({ cells }) => cells.length !== 4 || cells.some(cell => cell.trim() === ''))).toEqual(
      [],
    )
  })

  it('every file on the page exists', () => {
    expect(proofs.filter(({ file }) => !existsSync(new URL(file, ROOT)))).toEqual([])
  })

  it('every promise has a test, or a script that runs what `npm test` does not', () => {
    const isRun = ({ file }: Proof) => /\.test\.ts$|\/testing\//.test(file)
    expect(proofs.filter(proof => !isRun(proof) && proof.scripts.length === 0)).toEqual([])
    const scripts = new Set(proofs.flatMap(({ scripts }) => scripts))
    expect([...scripts].filter(script => !(script in workspace.scripts))).toEqual([])
  })
})
