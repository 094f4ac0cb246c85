import type { Worker } from 'node:worker_threads'
import { HeadgateError } from '../errors/headgate-error.js'
import { type Config, type CostConfig, type PolicyConfig, RULES, type RuleConfig } from '../policy/config.js'
import { rules as resolving } from '../policy/rules.js'
import { ConfigError } from './config-error.js'
import { fromSent } from './limits-by-name.js'
import { parseConfig, type ReadOptions } from './parse-config.js'
import type { ConfigPart, ParseRejection, ParseReply, ParseRequest } from './parse-worker.js'

/** Shorter texts are parsed before a thread would have started. */
const SHORT = 4_096

/**
 * Parses like `parseConfig`, but without blocking the event loop: a long text is parsed in a thread. If no thread
 * can be started, as in a bundle without the worker's file, it is parsed here.
 */
export async function parseBeside(
  text: string,
  fileName: string,
  options: ReadOptions = {},
): Promise<Config> {
  if (text.length <= SHORT) return parseConfig(text, fileName, options)
  const worker = await startWorker()
  if (worker === null) return parseConfig(text, fileName, options)
  try {
    return (await askWorker(worker, text, fileName, options)) ?? (await parseConfig(text, fileName, options))
  } finally {
    await worker.terminate()
  }
}

async function startWorker(): Promise<Worker | null> {
  try {
    const { Worker } = await import('node:worker_threads')
    const worker = new Worker(new URL('./parse-worker.js', import.meta.url), { execArgv: [] })
    worker.unref()
    return worker
  } catch {
    return null
  }
}

/** Returns the configuration, or null if the thread ended without an answer. */
function askWorker(
  worker: Worker,
  text: string,
  fileName: string,
  { onWarning }: ReadOptions,
): Promise<Config | null> {
  const ask = (request: ParseRequest) => worker.postMessage(request)
  const parts: ConfigPart[] = []
  return new Promise((resolve, reject) => {
    worker.on('error', () => resolve(null))
    worker.on('exit', () => resolve(null))
    worker.on('message', (reply: ParseReply) => {
      if ('rejected' in reply) return reject(errorOf(reply.rejected, fileName))
      parts.push(reply.part)
      for (const warning of reply.part.warnings ?? []) onWarning?.(warning)
      if (reply.isLast) resolve(joined(parts))
      else ask('more')
    })
    ask({ text, fileName, isForWarnings: onWarning !== undefined })
  })
}

function joined(parts: readonly ConfigPart[]): Config | null {
  const policies: (readonly [string, PolicyConfig])[] = []
  const rules: RuleConfig[] = []
  const costs: CostConfig[] = []
  for (const part of parts) {
    for (const [name, policy] of part.policies ?? []) policies.push([name, fromSent(policy)])
    rules.push(...(part.rules ?? []))
    costs.push(...(part.costs ?? []))
  }
  const base = parts[0]?.base
  return base === undefined
    ? null
    : { ...base, policies: Object.fromEntries(policies), rules, costs, [RULES]: resolving }
}

/** Errors lose their class between threads. */
function errorOf({ code, wrong, issues, unlisted }: ParseRejection, fileName: string): HeadgateError {
  return issues === null ? new HeadgateError(code, wrong) : new ConfigError(fileName, issues, unlisted)
}
