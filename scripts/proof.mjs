// `npm run proof -- <name>`: runs what proves a promise and takes too long for `npm test`. Arguments after the name are passed
// on, and every proof lists its own with `--help`.

import { join } from 'node:path'
import { bin, root, run, say } from './prepare.mjs'

const script = file => [join(root, file)]
const longTests = (...files) => [join(root, 'scripts/test.mjs'), ...files]
const onBuild = file => [join(root, 'scripts/prepared.mjs'), file]

const PROOFS = {
  long: longTests(
    'packages/headgate/test/redis-proofs',
    'packages/headgate/test/guard/shares.test.ts',
    'packages/headgate/test/memory-store.test.ts',
    'packages/server/test/faults',
    'bench/src/bench.test.js',
  ),
  spellings: longTests('packages/headgate/test/rules/spellings.test.ts'),
  simulation: script('packages/headgate/test/simulation/run.mjs'),
  faults: script('packages/headgate/test/faults/run.mjs'),
  hostile: script('packages/server/test/hostile/run.mjs'),
  load: onBuild('bench/src/load/main.js'),
  soak: onBuild('bench/src/soak/main.js'),
}

const [name = '', ...args] = process.argv.slice(2)
if (!Object.hasOwn(PROOFS, name)) {
  say(`npm run proof -- <name>: expected one of ${Object.keys(PROOFS).join(', ')}; got '${name}'`)
  process.exit(2)
}
process.env.HEADGATE_LONG = '1'
const built = await run(process.execPath, [bin('typescript/bin/tsc'), '-b'])
process.exitCode = built === 0 ? await run(process.execPath, [...PROOFS[name], ...args]) : built
