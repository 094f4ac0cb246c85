import type { Limit } from 'headgate'
import {
  type ConvertedLimits,
  type ConvertedPolicy,
  type ConvertedRule,
  EXEMPT,
} from './convert-descriptors.js'

/** Writes a policy file with the limits, and comments on what differs from before. */
export function policyText({ policies, rules, subjects, left }: ConvertedLimits, source: string): string {
  const written = [
    ...policies.flatMap(policyLines),
    ...([...subjects.values()].includes(null) ? EXEMPT_LINES : []),
  ]
  return [
    '# yaml-language-server: $schema=./node_modules/headgate/headgate.schema.json',
    '',
    `## Converted from ${oneLine(source)} of envoyproxy/ratelimit. Windows slide, and a request that is denied counts nowhere.`,
    '## Of several descriptors that Envoy would send for a request, one rule for its route and one for its caller apply.',
    '## Check it with: headgate rules validate. Ask it with: headgate rules explain GET /',
    '',
    '## As with Envoy, whatever no rule matches is not limited.',
    `tiers: { ${EXEMPT}: { minute: unlimited } }`,
    `default: { tier: ${EXEMPT} }`,
    'levels: all',
    '',
    ...(written.length === 0 ? [] : ['policies:', ...written, '']),
    ...(rules.length === 0 ? [] : ['rules:', ...rules.map(ruleLine), '']),
    ...(subjects.size === 0 ? [] : ['subjects:', ...[...subjects].map(subjectLine), '']),
    ...(left.length === 0 ? [] : ['## Not converted to a rule:', ...left.map(leftLine), '']),
  ].join('\n')
}

/** A rule about all callers comes before the tier of one of them; a policy of its own comes before the rule. */
const EXEMPT_LINES = [
  '  ## For callers whom nothing limits.',
  `  ${EXEMPT}: { algorithm: sliding-window-counter, limit: 4294967295, window: 1s }`,
]

function policyLines({ name, from, limit, isShadow }: ConvertedPolicy): string[] {
  const numbers = limitText(limit)
  const value = isShadow ? `{ limits: [${numbers}], mode: shadow }` : numbers
  return [`  ## ${oneLine(from)}`, `  ${JSON.stringify(name)}: ${value}`]
}

function limitText(limit: Limit): string {
  const options = Object.entries(limit.algorithm.optionsOf(limit))
  return `{ ${options.map(([option, value]) => `${option}: ${value}`).join(', ')} }`
}

function ruleLine({ policy, match, isShared }: ConvertedRule): string {
  const fields = Object.entries(match).map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  const shared = isShared ? ', per: everyone' : ''
  const charge = policy === null ? `tier: ${EXEMPT}` : `policy: ${JSON.stringify(policy)}${shared}`
  return `  - { match: { ${fields.join(', ')} }, ${charge} }`
}

function subjectLine([subject, policy]: readonly [string, string | null]): string {
  return `  ${JSON.stringify(subject)}: { policy: ${JSON.stringify(policy ?? EXEMPT)} }`
}

function leftLine({ from, because }: ConvertedLimits['left'][number]): string {
  return `## - ${oneLine(from)}: ${oneLine(because)}`
}

/** Foreign text must not end a comment. */
function oneLine(text: string): string {
  return JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')
}
