import type { Command } from 'commander'
import { printable } from 'headgate/internal'
import { UnavailableError } from '../operators/operator-errors.js'
import { inOption } from './in-option.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface LoadFlags {
  readonly redis?: string
  readonly json?: boolean
}

/** Adds `headgate functions`. */
export function addFunctionsCommand(program: Command, terminal: Terminal): void {
  const functions = program
    .command('functions')
    .description('Manage Redis Functions, for stores that use them instead of scripts.')
  functions
    .command('load')
    .description('Load the library into every node of a Redis, with the rights of this user.')
    .option('--redis <url>', 'the Redis to load it into (default: RATE_LIMIT_REDIS_URL)')
    .option('--json', 'print the nodes as JSON')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate functions load --redis redis://admin:secret@127.0.0.1:6379',
    )
    .action(async (flags: LoadFlags) => {
      const nodes = await load(flags.redis ?? (process.env.RATE_LIMIT_REDIS_URL || undefined))
      terminal.print(
        flags.json ? printable(JSON.stringify({ loaded: nodes })) : `loaded into ${nodes.join(', ')}`,
      )
    })
  functions
    .command('print')
    .description('Print the library, for those who load it by other means.')
    .allowExcessArguments(false)
    .action(async () => {
      const { functionLibraryCode } = await import('headgate/redis')
      terminal.print(functionLibraryCode())
    })
}

async function load(url: string | undefined): Promise<readonly string[]> {
  if (url === undefined) {
    throw new UsageError({
      field: '--redis',
      expected: 'a URL, here or in RATE_LIMIT_REDIS_URL',
      got: 'none',
    })
  }
  // Loaded on demand, so that --help does not wait for a Redis client.
  const { functionLibraryCode } = await import('headgate/redis')
  const { parseRedisUrl } = await import('../redis/parse-redis-url.js')
  const { connectNodes } = await import('../redis/nodes.js')
  inOption('--redis', () => parseRedisUrl(url))
  const { nodes, close } = await connectNodes(url).catch(error => {
    throw new UnavailableError(`--redis: ${(error as Error).message}`)
  })
  try {
    for (const { send } of nodes) await send('FUNCTION', 'LOAD', 'REPLACE', functionLibraryCode())
    return nodes.map(({ name }) => name)
  } finally {
    close()
  }
}
