/** The flags of `headgate serve` for alerts: their thresholds, budgets, and receivers. */
import type { Command } from 'commander'
import { type Environment, mistakeAt } from 'headgate/internal'
import {
  ALERT_NAMES,
  type AlertName,
  type AlertOptions,
  type AlertRules,
  DEFAULT_RULES,
} from '../observe/alert-rules.js'
import { secretFromFile } from './read-secrets.js'
import { UsageError } from './usage-error.js'

/** The flags as typed. */
export interface AlertFlags {
  readonly alert?: readonly string[]
  readonly alertWebhook?: string
}

const SETTING = /^([a-z-]+)=(?:(off)|(\d+(?:\.\d+)?)(?:,(\d{1,5})s(?:,(\d{1,5})s)?)?)$/
const SOURCE = /^(file|env):(.+)$/
/** A budget has no usual hold of its own: it is watched like the rate of rejections. */
const BUDGET = { holdMs: 60_000, resolveMs: 120_000 }

export function addAlertFlags(command: Command): void {
  command
    .option(
      '--alert <name=threshold...>',
      'another threshold, or off: denial-rate=0.1 latency=50 store-down=60 spike=5; budgets: budget-operations, budget-memory; how long it must be exceeded to fire and kept to end: latency=50,60s,120s',
    )
    .option(
      '--alert-webhook <source>',
      "call a webhook in Slack's JSON format; its address from file:path or env:VARIABLE",
    )
}

export async function alertOptions(flags: AlertFlags, environment: Environment): Promise<AlertOptions> {
  const rules: Record<AlertName, AlertRules[AlertName]> = { ...DEFAULT_RULES }
  for (const text of flags.alert ?? []) {
    const [, name, off, threshold, hold, resolve] = SETTING.exec(text) ?? []
    if (!isAlertName(name)) {
      throw new UsageError(
        mistakeAt(
          '--alert',
          `name=threshold, name=threshold,60s,120s or name=off, the name one of ${ALERT_NAMES.join(', ')}`,
          text,
        ),
      )
    }
    const usual = DEFAULT_RULES[name] ?? BUDGET
    rules[name] =
      off === undefined
        ? {
            threshold: Number(threshold),
            holdMs: hold === undefined ? usual.holdMs : Number(hold) * 1000,
            resolveMs: resolve === undefined ? usual.resolveMs : Number(resolve) * 1000,
          }
        : null
  }
  const budget = {
    opsPerSecond: rules['budget-operations']?.threshold ?? null,
    memoryBytes: rules['budget-memory']?.threshold ?? null,
  }
  return { rules, budget, webhook: await webhookOf(flags.alertWebhook, environment) }
}

function isAlertName(name: string | undefined): name is AlertName {
  return ALERT_NAMES.some(known => known === name)
}

/** Never repeats the value: the address of a webhook is its password. */
async function webhookOf(source: string | undefined, environment: Environment): Promise<string | null> {
  if (source === undefined) return null
  const [, kind, place = ''] = SOURCE.exec(source) ?? []
  if (kind === undefined) {
    throw new UsageError({
      field: '--alert-webhook',
      expected: 'file:path or env:VARIABLE',
      got: 'something else',
    })
  }
  const text =
    kind === 'file' ? await secretFromFile('--alert-webhook', place) : (environment[place] ?? '').trim()
  const isUrl = URL.canParse(text) && ['http:', 'https:'].includes(new URL(text).protocol)
  if (isUrl) return text
  throw new UsageError({
    field: '--alert-webhook',
    expected: `an http or https address in ${kind}:${place}`,
    got: 'something else',
  })
}
