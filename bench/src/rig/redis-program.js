/** The redis-server to start, installed first if it is missing. @returns {Promise<string>} */
export async function redisProgram() {
  const finder = new URL('../../../scripts/system-programs.mjs', import.meta.url).href
  const { ensureProgram } = await import(finder)
  return ensureProgram('redis-server')
}
