import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Check } from '../../src/check/check.ts'
import type { Answer } from '../../src/store/ask-store.ts'

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))
const SHIFTED_CLOCK = new URL('shifted-clock.mjs', import.meta.url).href

interface Job {
  /** The module that exports `redisStore`. Default: the built one. */
  readonly library?: string
  readonly client: 'ioredis' | 'node-redis'
  readonly ports: readonly number[]
  readonly cluster: boolean
  /** Whether to record every script call; on a single Redis only. */
  readonly recordCalls?: boolean
  /** How far the clocks of the process are off. */
  readonly clockShiftMs?: number
}

/** A check with its number among all checks, for the report. */
export type NumberedCheck = Check & { readonly number: number }

export interface SaturateJob extends Job {
  readonly job: 'saturate'
  /** By subject. */
  readonly checks: readonly (readonly NumberedCheck[])[]
  /** By subject, a check with room for everything. */
  readonly clocks: readonly Check[]
  readonly costs: readonly number[]
  readonly inFlight: number
  readonly durationMs: number
  readonly seed: number
}

export interface SpendJob extends Job {
  readonly job: 'spend'
  readonly checks: readonly Check[]
  readonly times: number
}

export interface LeaseJob extends Job {
  readonly job: 'lease'
  /** How many processes share what remains. */
  readonly processes: number
  readonly checks: readonly Check[]
  readonly inFlight: number
  readonly durationMs: number
}

interface Report {
  readonly calls: readonly unknown[]
  readonly warnings: readonly string[]
}

/** Seven numbers per verdict: the check, time asked, cost, time charged or −1, wait, remaining, reset. */
export interface SaturateReport extends Report {
  readonly decisions: number
  readonly verdicts: Float64Array
}

export interface SpendReport extends Report {
  readonly answers: readonly Answer[]
  /** The time according to the process. */
  readonly unixMs: number
}

/** Three numbers per admission: the check, when the answer arrived, and how long it took, in microseconds. */
export interface LeaseReport extends Report {
  readonly asked: number
  readonly leased: number
  readonly admitted: Float64Array
}

/** Does each job in a process of its own. All start at the same moment; if one fails, so does the whole. */
export function runWorkers(jobs: readonly SaturateJob[]): Promise<SaturateReport[]>
export function runWorkers(jobs: readonly SpendJob[]): Promise<SpendReport[]>
export function runWorkers(jobs: readonly LeaseJob[]): Promise<LeaseReport[]>
export async function runWorkers(jobs: readonly (SaturateJob | SpendJob | LeaseJob)[]): Promise<Report[]> {
  const children = jobs.map(start)
  try {
    await Promise.all(children.map(child => nextMessage(child)))
    for (const child of children) child.send('go')
    return (await Promise.all(children.map(child => nextMessage(child)))) as Report[]
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

function start(job: SaturateJob | SpendJob | LeaseJob): ChildProcess {
  const shifted = job.clockShiftMs !== undefined
  const child = fork(WORKER, {
    serialization: 'advanced',
    execArgv: shifted ? ['--import', SHIFTED_CLOCK] : [],
    env: { ...process.env, ...(shifted && { HEADGATE_CLOCK_SHIFT_MS: String(job.clockShiftMs) }) },
  })
  // As text, in which a limit has the name of its algorithm.
  child.send(JSON.stringify(job))
  return child
}

function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`The worker ended with ${code} before it reported.`)))
  })
}
