// `npm run demo`: installs and builds what is missing, then shows the product at work. Arguments are passed on:
// `npm run demo -- --seconds 300`.

import { prepare, say } from './prepare.mjs'

try {
  await prepare()
} catch (error) {
  say(error.message)
  process.exit(1)
}
await import('../bench/src/demo/main.js')
