import type { RedisProcess } from './redis-launch.ts'

/** Starts `count` servers side by side. If one fails, the others are stopped before the error is thrown. */
export async function startFleet(
  count: number,
  start: (index: number) => Promise<RedisProcess>,
): Promise<RedisProcess[]> {
  const starts = await Promise.allSettled(Array.from({ length: count }, (_, index) => start(index)))
  const started = starts.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const failed = starts.find(outcome => outcome.status === 'rejected')
  if (!failed) return started
  await stopFleet(started)
  throw failed.reason
}

export async function stopFleet(servers: readonly RedisProcess[]): Promise<void> {
  await Promise.all(servers.map(server => server.stop()))
}
