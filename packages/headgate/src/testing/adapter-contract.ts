import type { AdapterLaw, AdapterUnderTest, AppUnderTest, Served } from './adapters/adapter-law.js'
import { answerLaws } from './adapters/answer-laws.js'
import { faultLaws } from './adapters/fault-laws.js'
import { nobodyLaws } from './adapters/nobody-laws.js'
import { permitLaws } from './adapters/permit-laws.js'
import { waitLaws } from './adapters/wait-laws.js'
import type { ContractTest } from './store-contract.js'

/**
 * Returns the contract of adapters as tests on a real listener, which reject with what was expected and what came.
 *
 * @example
 * for (const { name, run } of adapterContract(myAdapter)) it(name, run)
 */
export function adapterContract(adapter: AdapterUnderTest): readonly ContractTest[] {
  return [...answerLaws, ...faultLaws, ...nobodyLaws, ...permitLaws, ...waitLaws]
    .filter(law => law.applies?.(adapter) ?? true)
    .map(law => ({ name: law.name, run: () => runLaw(law, adapter) }))
}

async function runLaw(law: AdapterLaw, adapter: AdapterUnderTest): Promise<void> {
  const closing: (() => Promise<void>)[] = []
  const start = async (app: Omit<AppUnderTest, 'handle'>): Promise<Served> => {
    const handled: string[] = []
    const handle = (body: string) => {
      handled.push(body)
      return 'hello'
    }
    const server = await adapter.serve({ ...app, handle })
    closing.push(server.close)
    return { url: server.url, handled }
  }
  try {
    await law.run({
      adapter,
      serve: (...limits) => start({ limits, limited: 'app', beginsEarly: false }),
      serveRoutes: (...limits) => start({ limits, limited: 'routes', beginsEarly: false }),
      serveEarly: (...limits) => start({ limits, limited: 'app', beginsEarly: true }),
    })
  } finally {
    for (const close of closing) await close()
  }
}
