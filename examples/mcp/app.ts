// A server of the Model Context Protocol on stdin and stdout: each tool may be called five times in any minute.
import { fileURLToPath } from 'node:url'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { limitTools } from 'headgate/mcp'

/** Serves the tools on a transport. */
export async function serve(transport: Transport) {
  const server = new McpServer({ name: 'example', version: '1.0.0' })
  server.registerTool('time', { description: 'Says what time it is' }, () => ({
    content: [{ type: 'text', text: new Date().toISOString() }],
  }))
  // On stdio there is one caller. Over HTTP, callers are told apart by their token.
  await server.connect(limitTools(transport, { limit: 5, window: '1m', subject: 'user:local' }))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(new StdioServerTransport())
