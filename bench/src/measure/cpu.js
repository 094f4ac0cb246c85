/**
 * Returns the seconds of processor time that this process has used since `before`.
 * The loops never wait, so on an idle machine this equals wall-clock time; on a busy one it excludes the time in which
 * other processes ran. It includes the collector and the compiler on other threads.
 *
 * @param {NodeJS.CpuUsage} before
 */
export function cpuSecondsSince(before) {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}
