// `npm run generate`: writes the JSON Schema and the reference page of the policy file. Tests hold both to the sources.

import { writeFileSync } from 'node:fs'
import * as gateway from '../dist/config/file/gateway.js'
import * as identify from '../dist/config/file/identify.js'
import * as limit from '../dist/config/file/limit.js'
import * as policy from '../dist/config/file/policy.js'
import * as policyFile from '../dist/config/file/policy-file.js'
import * as rule from '../dist/config/file/rule.js'
import * as tier from '../dist/config/file/tier.js'
import * as tokens from '../dist/config/file/tokens.js'
import { configSchema } from '../dist/config/schema.js'
import { defaultTiers } from '../dist/policy/tiers.js'
import { policyFilePage } from './policy-file-page.mjs'

const shapes = {
  ...gateway,
  ...identify,
  ...limit,
  ...policy,
  ...policyFile,
  ...rule,
  ...tier,
  ...tokens,
  defaultTiers,
}
writeFileSync(
  new URL('../headgate.schema.json', import.meta.url),
  `${JSON.stringify(configSchema(), null, 2)}\n`,
)
writeFileSync(new URL('../../../docs/reference/policy-file.md', import.meta.url), policyFilePage(shapes))
