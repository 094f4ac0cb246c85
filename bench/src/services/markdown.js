/** @typedef {{ name: string, perSecond: number, cpuUs: number, p99Ms: number, ratio: number | null }} Row */
/** @typedef {{ setting: { node: string, redis: string, cores: number, rounds: number, load: number }, rows: readonly Row[], p99Ms: { healthy: number, frozen: number }, targets: readonly Target[] }} Results */
/** @typedef {{ name: string, sense: 'at least' | 'below', target: number, got: number, met: boolean }} Target */

/** @param {Results} results @param {string} heading */
export function toMarkdown({ setting, rows, p99Ms, targets }, heading) {
  const { node, redis, cores, rounds, load } = setting
  return [
    `${heading} Over the wire`,
    '',
    `32 callers with one request at a time each, on the embedded store; medians of ${rounds} rounds. The ratio compares requests per second with the line above. Server CPU is that of the server's process. Node ${node}, ${cores} cores, load ${load.toFixed(1)} at the start.`,
    '',
    '| | requests/s | ratio | p99 | server CPU a request |',
    '|---|---|---|---|---|',
    ...rows.map(
      ({ name, perSecond, ratio, p99Ms: p99, cpuUs }) =>
        `| ${name} | ${perSecond.toLocaleString('en')} | ${ratio === null ? '' : ratio.toFixed(2)} | ${p99.toFixed(1)} ms | ${cpuUs.toFixed(0)} µs |`,
    ),
    '',
    `ShouldRateLimit of four descriptors at 2,000 a second on Redis ${redis}: p99 ${p99Ms.healthy.toFixed(1)} ms; with Redis frozen ${p99Ms.frozen.toFixed(1)} ms.`,
    '',
    '| target | wanted | measured | |',
    '|---|---|---|---|',
    ...targets.map(
      ({ name, sense, target, got, met }) =>
        `| ${name} | ${sense} ${target} | ${got.toFixed(2)} | ${met ? 'met' : 'missed'} |`,
    ),
  ].join('\n')
}
