import { createGate } from 'headgate'
import { defineConfig, loadConfig } from 'headgate/config'
import { type Desk, gateDesk, serverDesk } from '../operators/desk.js'
import { createRedisStore } from '../redis/connect.js'
import { UsageError } from './usage-error.js'

/** The desk a command line names: a running server's, or Redis itself. */
export async function openDesk(flags: {
  readonly server: string
  readonly redis?: string
  readonly config?: string
}): Promise<Desk> {
  if (flags.redis === undefined) {
    if (!URL.canParse(flags.server)) throw new UsageError(`--server: expected a URL; got "${flags.server}"`)
    return serverDesk(flags.server)
  }
  const config = flags.config === undefined ? defineConfig({}) : await loadConfig(flags.config)
  const { prefix, tenant } = config
  const store = createRedisStore({
    url: flags.redis,
    ...(prefix !== undefined && { prefix }),
    ...(tenant !== undefined && { tenant }),
  })
  // It can be read, or this says why not: an operator must not take a guess for what is in force.
  const problems: string[] = []
  const gate = createGate({ config, store, onWarning: message => problems.push(message) })
  await gate.ready()
  const refuseUnread = (what: string) => {
    const problem = problems.find(message => message.startsWith(`${what}: could not be read`))
    if (problem !== undefined) throw new Error(`--redis: ${problem}`)
  }
  const desk = gateDesk(gate)
  try {
    refuseUnread('control')
  } catch (error) {
    await gate.close()
    throw error
  }
  return {
    ...desk,
    // The switches work without them.
    async overrides() {
      refuseUnread('overrides')
      return desk.overrides()
    },
  }
}
