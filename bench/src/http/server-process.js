/** Runs one server in its own process. Reports its port and, when asked, the processor time it has used. */
import { ENTRIES, idOf } from './entries.js'

const [id, redisUrl] = process.argv.slice(2)
const entry = ENTRIES.find(candidate => idOf(candidate) === id)
if (entry === undefined) throw new Error(`no server has the id '${id}'`)

const SERVE = {
  express: async () => (await import('./servers/express.js')).serveExpress,
  fastify: async () => (await import('./servers/fastify.js')).serveFastify,
  hono: async () => (await import('./servers/hono.js')).serveHono,
  koa: async () => (await import('./servers/koa.js')).serveKoa,
  'node:http': async () => (await import('./servers/node-http.js')).serveNodeHttp,
}
const serve = await SERVE[entry.framework]()
const port = await serve(entry, String(redisUrl))
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.(user + system)
})
process.send?.(port)
