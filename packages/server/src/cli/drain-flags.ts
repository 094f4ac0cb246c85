/** The flags of `headgate serve` for how it ends. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DrainOptions } from '../service/front.js'

/** The flags, in milliseconds. */
export interface DrainFlags {
  readonly drainDelay: number
  readonly drainTimeout: number
}

const MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const MOST_MS = 86_400_000

export function addDrainFlags(command: Command): void {
  command
    .addOption(
      new Option('--drain-delay <duration>', 'on SIGTERM, how long to be not ready and still serve')
        .argParser(parseDuration)
        .default(0, '0s'),
    )
    .addOption(
      new Option(
        '--drain-timeout <duration>',
        'then, how long requests in flight may take before they are cut',
      )
        .argParser(parseDuration)
        .default(30_000, '30s'),
    )
}

export function drainOf({ drainDelay, drainTimeout }: DrainFlags): DrainOptions {
  return { delayMs: drainDelay, timeoutMs: drainTimeout }
}

function parseDuration(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,9})(ms|s|m|h)$/.exec(text) ?? []
  const ms = Number(number) * (MS[unit] ?? Number.NaN)
  if (number !== '' && ms <= MOST_MS) return ms
  throw new InvalidArgumentError(`expected a duration up to 24h, such as 500ms, 30s or 5m; got "${text}".`)
}
