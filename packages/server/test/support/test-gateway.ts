import { createLimiter, type Limiter, slidingWindowLog } from 'headgate'
import { parseUpstream } from '../../src/config/parse-upstream.js'
import { createGateway } from '../../src/gateway/gateway.js'
import { listen } from '../../src/http/listen.js'

export interface TestGateway {
  readonly url: string
  readonly logged: string[]
  close(): Promise<void>
}

export interface TestGatewayOptions {
  readonly limit?: number
  readonly limiter?: Limiter<string, string>
  readonly upstreamTimeoutMs?: number
}

/** A gateway in this process in front of `upstreamUrl`, with one limit a minute for every client address. */
export async function startGateway(
  upstreamUrl: string,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const upstream = parseUpstream(upstreamUrl, (_path, message) => {
    throw new Error(message)
  })
  if (upstream === null) throw new Error('no upstream')
  const { limit = 1_000, upstreamTimeoutMs } = options
  const policies = { api: slidingWindowLog({ limit, window: '1m' }) }
  const logged: string[] = []
  const { server, release } = createGateway({
    limiter: options.limiter ?? createLimiter({ policies }),
    rule: { policy: 'api' },
    upstream,
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
