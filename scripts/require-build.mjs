// `prepack` of the packages: fails if there is no build, because npm would then pack an empty package without complaint.
// `node ../../scripts/require-build.mjs dist/index.js`, in the package's folder.

import { existsSync } from 'node:fs'

const missing = process.argv.slice(2).find(file => !existsSync(file))
if (missing !== undefined) {
  process.stderr.write(
    `${missing}: expected what the build writes; got no such file: run npm run build first\n`,
  )
  process.exitCode = 1
}
