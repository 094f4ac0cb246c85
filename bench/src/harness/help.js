import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const HEADER = /^\/\*\*\n((?: \*.*\n)+?) \*\/\n/

/**
 * With `--help` or `-h`, prints the first comment of the program's file, which lists its options, and ends the process.
 *
 * @param {string} url The program's `import.meta.url`.
 */
export function helpIfAsked(url) {
  if (!process.argv.slice(2).some(arg => arg === '--help' || arg === '-h')) return
  process.stdout.write(helpOf(url))
  process.exit(0)
}

/** @param {string} url */
function helpOf(url) {
  const [, comment = ''] = HEADER.exec(readFileSync(fileURLToPath(url), 'utf8')) ?? []
  return comment.replaceAll(/^ \* ?/gm, '')
}
