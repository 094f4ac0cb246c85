/** Runs in a process of its own: one server. Says which port it listens on. */
import { ENTRIES, idOf } from './entries.js'

const [id, redisUrl] = process.argv.slice(2)
const entry = ENTRIES.find(candidate => idOf(candidate) === id)
if (entry === undefined) throw new Error(`no server has the id '${id}'`)

const SERVE = {
  express: async () => (await import('./servers/express.js')).serveExpress,
  fastify: async () => (await import('./servers/fastify.js')).serveFastify,
  hono: async () => (await import('./servers/hono.js')).serveHono,
}
const serve = await SERVE[entry.framework]()
process.send?.(await serve(entry, String(redisUrl)))
