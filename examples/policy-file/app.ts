import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createLimiter, decisionHeaders, decisionProblem } from 'headgate'
import { watchConfig } from 'headgate/config'
import { createClientAddress, limitedAddress } from 'headgate/identify'

const file = fileURLToPath(new URL('headgate.yaml', import.meta.url))

/** A service whose every request is decided by the policy file, as it is at that moment. */
export async function createApp(configFile = file) {
  const watched = await watchConfig(configFile, {
    onConfig: config => limiter.reload(config),
    onError: error => console.error('the last good policy file stays:', error),
  })
  const limiter = createLimiter({ config: watched.config })
  const clientAddress = createClientAddress({ trustedProxies: watched.config.trustedProxies })

  const server = createServer(async (req, res) => {
    const client = clientAddress(req.socket.remoteAddress, req.headers['x-forwarded-for'])
    const decision = await limiter.request({
      method: req.method ?? '',
      path: req.url ?? '',
      subject: `ip:${limitedAddress(client) ?? 'unknown'}`,
    })
    for (const [name, value] of decisionHeaders(decision)) res.setHeader(name, value)
    if (decision.allowed) return res.end('hello\n')
    const { status, headers, body } = decisionProblem(decision)
    res.writeHead(status, Object.fromEntries(headers)).end(JSON.stringify(body))
  })
  server.on('close', () => {
    watched.close()
    limiter.close()
  })
  return { server, limiter }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { server } = await createApp()
  server.listen(3000, '127.0.0.1', () => console.log('http://127.0.0.1:3000'))
}
