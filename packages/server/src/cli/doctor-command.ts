import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { printable } from 'headgate/internal'
import { UnavailableError } from '../operators/operator-errors.js'
import type { Finding } from '../redis/examine.js'
import { fleetOf } from './fleet.js'
import { inOption } from './in-option.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface DoctorFlags {
  readonly redis?: string
  readonly config?: string
  readonly json?: boolean
}

/** The findings about one node, or about the whole. */
interface Report {
  readonly node: string
  readonly findings: readonly Finding[]
}

/** Doctor found something that keeps limits from working, and has printed it. */
class UnsoundError extends Error {}

/** Adds `headgate doctor`. */
export function addDoctorCommand(program: Command, terminal: Terminal): void {
  program
    .command('doctor')
    .description(
      'Check whether a Redis is fit for limits: version, eviction, latency, clock, rights, functions.',
    )
    .option('--redis <url>', 'the Redis to check (default: RATE_LIMIT_REDIS_URL)')
    .option('-c, --config <file>', 'the policy file whose prefix and tenant are used')
    .option('--json', 'print it as JSON')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate doctor --redis redis://127.0.0.1:6379\n  headgate doctor --redis rediss-cluster://a,b --json',
    )
    .action(async (flags: DoctorFlags) => {
      const reports = await examine(flags)
      terminal.print(
        flags.json ? printable(JSON.stringify({ nodes: reports })) : reports.map(words).join('\n'),
      )
      const failed = reports.flatMap(({ findings }) => findings).filter(({ state }) => state === 'fail')
      if (failed.length > 0) throw new UnsoundError(`${failed.length} of the checks failed`)
    })
}

async function examine(flags: DoctorFlags): Promise<readonly Report[]> {
  const url = flags.redis ?? (process.env.RATE_LIMIT_REDIS_URL || undefined)
  if (url === undefined)
    throw new UsageError({
      field: '--redis',
      expected: 'a URL, here or in RATE_LIMIT_REDIS_URL',
      got: 'none',
    })
  // Loaded on demand, so that --help does not wait for a Redis client.
  const { defineConfig, loadConfig } = await import('headgate/config')
  const { parseRedisUrl } = await import('../redis/parse-redis-url.js')
  const { connectNodes } = await import('../redis/nodes.js')
  const { createRedisStore } = await import('../redis/connect.js')
  const { examineDecisions, examineNode } = await import('../redis/examine.js')
  inOption('--redis', () => parseRedisUrl(url))
  const config = flags.config === undefined ? defineConfig({}) : await loadConfig(flags.config)
  const { nodes, close } = await connectNodes(url).catch(error => {
    throw new UnavailableError(`--redis: ${(error as Error).message}`)
  })
  try {
    const reports: Report[] = []
    for (const node of nodes) reports.push({ node: node.name, findings: await examineNode(node, Date.now) })
    const store = createRedisStore({
      url,
      onStoreFailure: 'throw',
      // This only asks whether it decides; speed is a check of its own.
      deadlineMs: 1_000,
      onWarning: () => {},
      ...fleetOf(config),
    })
    await store.ready()
    const findings = await examineDecisions(store, config, randomBytes(6).toString('hex'))
    return [...reports, { node: 'limits', findings }]
  } finally {
    close()
  }
}

function words({ node, findings }: Report): string {
  return findings
    .map(({ check, state, text }) =>
      printable(`${state.padEnd(5)} ${node.padEnd(6)} ${check.padEnd(10)} ${text}`),
    )
    .join('\n')
}
