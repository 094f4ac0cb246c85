/** Runs one web server in a process of its own, and reports its port. */
import { startServer } from './http-servers.js'

const [entry = '', redisUrl = ''] = process.argv.slice(2)
process.send?.(await startServer(JSON.parse(entry), redisUrl))
