/**
 * Parses policy files in a thread, so that a large one does not hold requests up: a megabyte of YAML takes a
 * second. The result is sent back in pieces on request, because receiving it takes time as well.
 */
import { parentPort } from 'node:worker_threads'
import { type ErrorCode, isHeadgateError } from '../errors/headgate-error.js'
import type { Mistake } from '../errors/mistake.js'
import type { Config, CostConfig, RuleConfig } from '../policy/config.js'
import { ConfigError, type ConfigIssue, type ConfigWarning } from './config-error.js'
import { type SentPolicy, toSent } from './limits-by-name.js'
import { parseConfig } from './parse-config.js'

/** A request to the thread. */
export type ParseRequest =
  | { readonly text: string; readonly fileName: string; readonly isForWarnings: boolean }
  | 'more'

/** Its answer: a piece of the configuration, or why there is none. */
export type ParseReply =
  | { readonly part: ConfigPart; readonly isLast: boolean }
  | { readonly rejected: ParseRejection }

/** A piece of a configuration: first everything but the long lists, then those in slices. */
export interface ConfigPart {
  readonly base?: Config
  readonly warnings?: readonly ConfigWarning[]
  readonly policies?: readonly (readonly [string, SentPolicy])[]
  readonly rules?: readonly RuleConfig[]
  readonly costs?: readonly CostConfig[]
}

export interface ParseRejection {
  readonly code: ErrorCode
  readonly wrong: Mistake | string
  /** Set if the file could be read but not used. */
  readonly issues: readonly ConfigIssue[] | null
  readonly unlisted: number
}

/** About as many as can be received in a millisecond. */
const AT_ONCE = 250

let parts: Iterator<ConfigPart, undefined> = [].values()
let next: IteratorResult<ConfigPart, undefined>

parentPort?.on('message', async (request: ParseRequest) => {
  try {
    if (request !== 'more') {
      const warnings: ConfigWarning[] = []
      const onWarning = (warning: ConfigWarning): void => void warnings.push(warning)
      const options = request.isForWarnings ? { onWarning } : {}
      parts = partsOf(await parseConfig(request.text, request.fileName, options), warnings)
      next = parts.next()
    }
    const part = next.value ?? {}
    next = parts.next()
    post({ part, isLast: next.done === true })
  } catch (error) {
    if (!isHeadgateError(error)) throw error
    const { code, message, field, expected, got, suggestion } = error
    const { issues, unlisted } = error instanceof ConfigError ? error : { issues: null, unlisted: 0 }
    const wrong =
      field === undefined || expected === undefined ? message : { field, expected, got, suggestion }
    post({ rejected: { code, wrong, issues, unlisted } })
  }
})

function post(reply: ParseReply): void {
  parentPort?.postMessage(reply)
}

function* partsOf(config: Config, warnings: readonly ConfigWarning[]): Generator<ConfigPart, undefined> {
  yield { base: { ...config, policies: {}, rules: [], costs: [] }, warnings }
  for (const policies of slices(Object.entries(config.policies))) {
    yield { policies: policies.map(([name, policy]) => [name, toSent(policy)] as const) }
  }
  for (const rules of slices(config.rules)) yield { rules }
  for (const costs of slices(config.costs)) yield { costs }
  return undefined
}

function* slices<T>(list: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < list.length; from += AT_ONCE) yield list.slice(from, from + AT_ONCE)
}
