/**
 * Seconds of processor time this process has used since `before`.
 * The loops never wait, so on an idle machine this is the time on the clock; on a busy one it leaves out the time in
 * which others ran. What the collector and the compiler do on other threads is part of it: somebody pays for it.
 *
 * @param {NodeJS.CpuUsage} before
 */
export function cpuSecondsSince(before) {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}
