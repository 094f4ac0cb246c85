// `node scripts/release-version.mjs v1.2.3`: fails unless everything that says a version says this one.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './prepare.mjs'

const read = path => readFileSync(join(root, path), 'utf8')

/**
 * Returns every place that states another version.
 *
 * @param {string} version
 * @returns {string[]}
 */
export function placesThatDiffer(version) {
  const library = JSON.parse(read('packages/headgate/package.json'))
  const server = JSON.parse(read('packages/server/package.json'))
  const said = {
    'packages/headgate/package.json': library.version,
    'packages/server/package.json': server.version,
    'packages/server/package.json, dependencies.headgate': server.dependencies.headgate,
    'packages/headgate/src/observe/version.ts': /VERSION = '([^']+)'/.exec(
      read('packages/headgate/src/observe/version.ts'),
    )?.[1],
  }
  return Object.entries(said)
    .filter(([, found]) => found !== version)
    .map(([place, found]) => `${place}: expected ${version}; got ${found}`)
}

/** Whether the changelog has a section of this version with something in it. */
function isInChangelog(version) {
  const [, section = ''] = read('CHANGELOG.md').split(`\n## ${version}`)
  return /^- /m.test(section.split('\n## ')[0])
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const version = (process.argv[2] ?? '').replace(/^v/, '')
  const problems = placesThatDiffer(version)
  if (!isInChangelog(version))
    problems.push(`CHANGELOG.md: expected a section ${version} that says something`)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
}
