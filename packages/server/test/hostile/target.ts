import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Finished, type HeadgateProcess, serveHeadgate } from '../support/headgate-process.js'
import { type RawUpstream, startRawUpstream } from '../support/raw-upstream.js'

/** A real `headgate serve` under attack, in front of an upstream that shows the bytes it received. */
export interface Target extends Pick<HeadgateProcess, 'gatewayUrl' | 'adminUrl' | 'stdout'> {
  readonly upstream: RawUpstream
  /** Open descriptors of the server's process; null if the system does not tell. */
  descriptors(): number | null
  /** Memory of the server's process; null if the system does not tell. */
  residentBytes(): number | null
  /** Sends SIGTERM; done at the end if the attack does not. */
  stop(): Promise<Stopped>
}

/** How a server ended. */
interface Stopped extends Finished {
  readonly tookMs: number
}

export interface TargetOptions {
  /** The policy file; by default it limits nobody. */
  readonly config?: string
  readonly args?: readonly string[]
  /** Another upstream than the one that shows bytes. */
  readonly upstreamUrl?: string
}

const UNLIMITED =
  'policies:\n  api: { algorithm: sliding-window-counter, limit: 4000000000, window: 1m }\ndefault: { policy: api }\n'
/** Idle connections to clients and to the upstream are closed within this time. */
const QUIET_WITHIN_MS = 12_000
const STOP_WITHIN_MS = 5_000
const SPARE_DESCRIPTORS = 5

/**
 * Attacks a server, and checks what every attack must leave behind: the process is alive, honest requests are
 * answered, its descriptors come back, and SIGTERM ends it in time, with nothing on stderr.
 */
export async function underAttack(
  options: TargetOptions,
  attack: (target: Target) => Promise<string>,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-hostile-'))
  const file = join(folder, 'headgate.yaml')
  writeFileSync(file, options.config ?? UNLIMITED)
  const upstream = await startRawUpstream()
  const server = await serveHeadgate(
    '--config',
    file,
    '--upstream',
    options.upstreamUrl ?? upstream.url,
    ...(options.args ?? []),
  )
  const { pid } = server.child
  const descriptors = () => countDescriptors(pid)
  let stopped: Promise<Stopped> | null = null
  const stop = () => {
    stopped ??= timed(() => server.end('SIGTERM'))
    return stopped
  }
  try {
    const { gatewayUrl, adminUrl, stdout } = server
    await fetch(gatewayUrl).then(answer => answer.arrayBuffer())
    const before = descriptors()
    const residentBytes = () => readResident(pid)
    const outcome = await attack({ gatewayUrl, adminUrl, stdout, upstream, descriptors, residentBytes, stop })
    if (stopped === null) await untilDescriptorsAreBack(server, before, descriptors)
    const { code, stderr, tookMs } = await stop()
    if (code !== 0 || stderr !== '') throw new Error(`after SIGTERM it ended with ${code}: ${stderr}`)
    if (tookMs > STOP_WITHIN_MS) throw new Error(`SIGTERM ended it after ${tookMs} ms`)
    return `${outcome}; stopped in ${tookMs} ms`
  } finally {
    server.child.kill('SIGKILL')
    await upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function untilDescriptorsAreBack(
  { child }: HeadgateProcess,
  before: number | null,
  descriptors: () => number | null,
): Promise<void> {
  if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`)
  const began = performance.now()
  const excess = () => (descriptors() ?? 0) - (before ?? 0)
  while (excess() > SPARE_DESCRIPTORS && performance.now() - began < QUIET_WITHIN_MS) await sleep(100)
  if (excess() > SPARE_DESCRIPTORS) throw new Error(`${excess()} more descriptors than before the attack`)
}

async function timed(work: () => Promise<Finished>): Promise<Stopped> {
  const began = performance.now()
  const finished = await work()
  return { ...finished, tookMs: Math.round(performance.now() - began) }
}

function countDescriptors(pid: number | undefined): number | null {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return null
  }
}

function readResident(pid: number | undefined): number | null {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kilobytes === undefined ? null : Number(kilobytes) * 1024
  } catch {
    return null
  }
}
