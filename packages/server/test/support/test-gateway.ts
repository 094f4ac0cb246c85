import { createGate, type Gate, slidingWindowLog } from 'headgate'
import { defineConfig, parseUpstream } from 'headgate/config'
import { createGateway } from '../../src/gateway/gateway.js'
import { listen } from '../../src/http/listen.js'
import { createServing } from '../../src/serving.js'

export interface TestGateway {
  readonly url: string
  readonly logged: string[]
  close(): Promise<void>
}

export interface TestGatewayOptions {
  readonly limit?: number
  readonly gate?: Gate
  readonly upstreamTimeoutMs?: number
  readonly trustedProxies?: readonly string[]
}

/** A gateway in this process in front of `upstreamUrl`, with one limit a minute for every client address. */
export async function startGateway(
  upstreamUrl: string,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const { limit = 1_000, upstreamTimeoutMs } = options
  const config = defineConfig({
    policies: { api: slidingWindowLog({ limit, window: '1m' }) },
    default: { policy: 'api' },
    trustedProxies: options.trustedProxies ?? [],
  })
  const serving = createServing(config, parseUpstream(upstreamUrl))
  const logged: string[] = []
  const { server, release } = createGateway({
    gate: options.gate ?? createGate({ config }),
    serving: () => serving,
    log: line => logged.push(line),
    ...(upstreamTimeoutMs === undefined ? {} : { upstreamTimeoutMs }),
  })
  const port = await listen(server, { host: '127.0.0.1', port: 0, hostFlag: '--host', portFlag: '--port' })
  return {
    url: `http://127.0.0.1:${port}`,
    logged,
    close: () =>
      new Promise(resolve => {
        server.close(() => {
          release()
          resolve()
        })
        server.closeAllConnections()
      }),
  }
}
