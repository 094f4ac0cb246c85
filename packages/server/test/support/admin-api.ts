import type { RuleLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { createStatistics } from 'headgate/metrics'
import { createAdminServer } from '../../src/admin/admin-server.js'
import type { Token } from '../../src/admin/tokens.js'
import { listen } from '../../src/http/listen.js'
import { mergeProcesses } from '../../src/metrics/process-counts.js'
import { UpstreamCounts } from '../../src/metrics/upstream-counts.js'
import type { UsagePages } from '../../src/redis/usage-pages.js'
import { adminEndpoints } from '../../src/service/admin-endpoints.js'
import { statsOf } from './test-stats.js'

/** The admin port of a limiter, listening on a free port. */
export interface AdminApi {
  readonly url: string
  readonly logged: readonly string[]
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  close(): void
}

export async function serveAdmin(
  limiter: RuleLimiter,
  tokens: readonly Token[] = [],
  usagePages: UsagePages | null = null,
): Promise<AdminApi> {
  const logged: string[] = []
  const log = (line: string) => void logged.push(line)
  const endpoints = adminEndpoints({
    limiter,
    config: () => defineConfig({}),
    policyText: async () => null,
    stats: statsOf(limiter),
    usagePages,
    statistics: createStatistics(),
    upstreams: new UpstreamCounts(),
    process: () => mergeProcesses([]),
    setControlHere: () => {},
    log,
    answers: () => [],
    tokens: () => [],
    metricsPublic: false,
    workers: () => ({ ready: 1, wanted: 1 }),
    arrivals: async () => ({ arrivals: [], share: 1 }),
    isServing: () => true,
    configState: () => ({ config: 'current', rejectedConfigs: 0 }),
  })
  const { server } = createAdminServer({ endpoints, tokens, names: [], log })
  const port = await listen(server, { host: '127.0.0.1', port: 0, hostFlag: '', portFlag: '' })
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    logged,
    post: (path, body, headers = {}) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
