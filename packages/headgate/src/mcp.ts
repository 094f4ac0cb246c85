export type { McpOptions, ToolCall } from './adapters/mcp.js'
export { limitTools, RATE_LIMITED } from './adapters/mcp.js'
