import type { Clock } from '../../time/clock.js'
import type { RedisConnection } from './connection.js'
import type { RunScript } from './script-runner.js'
import { commands, scripts } from './scripts.gen.js'

/** A set-up problem that will cause trouble later, although the store works. */
export interface StoreWarning {
  readonly code: WarningCode
  readonly message: string
}

export type WarningCode =
  | 'WARN_HEADGATE_COMMANDS_FORBIDDEN'
  | 'WARN_HEADGATE_EVICTION_POLICY'
  | 'WARN_HEADGATE_REDIS_VERSION'
  | 'WARN_HEADGATE_SCRIPTS_FORBIDDEN'
  | 'WARN_HEADGATE_SHARED_CLIENT'

export interface InspectionOptions {
  readonly connection: RedisConnection
  readonly run: RunScript
  /** Of the keys, on which the user needs its permissions. */
  readonly prefix: string
  readonly warn: (warning: StoreWarning) => void
  readonly clock: Clock
}

/** Inspects the server when it is first connected, and again now and then. */
export interface Inspection {
  lookOnce(): Promise<void>
  /**
   * Inspects it again in the background, once in a while: a set-up can change, and another server can take over.
   */
  lookAgain(): void
  /** Whether the server may evict limits, as far as it has been inspected. */
  isEvictionUnsafe(): boolean
}

const FLOOR = [6, 2] as const
const LOOK_EVERY_US = 60_000_000

export function createInspection({ connection, run, prefix, warn, clock }: InspectionOptions): Inspection {
  const warned = new Set<WarningCode>()
  let lookedAtUs = 0
  let evictionUnsafe = false

  async function look(): Promise<void> {
    lookedAtUs = clock.nowUs()
    evictionUnsafe = await inspectServer(connection, run, prefix, warning => {
      if (!warned.has(warning.code)) warn(warning)
      warned.add(warning.code)
    })
  }

  return {
    lookOnce: look,
    lookAgain() {
      if (clock.nowUs() - lookedAtUs >= LOOK_EVERY_US) look().catch(() => {})
    },
    isEvictionUnsafe: () => evictionUnsafe,
  }
}

/**
 * Warns of what is unsafe about the server, and skips what this user may not see. Returns whether limits can be
 * evicted.
 */
async function inspectServer(
  connection: RedisConnection,
  run: RunScript,
  prefix: string,
  warn: (warning: StoreWarning) => void,
): Promise<boolean> {
  await warnOfPermissions(run, prefix, warn)
  const info = await connection.info?.().catch(() => undefined)
  if (typeof info !== 'string') return false
  warnOfVersion(info, warn)
  return warnOfEviction(info, warn)
}

/** Names the commands that the user lacks, so that they can be pasted. */
async function warnOfPermissions(
  run: RunScript,
  prefix: string,
  warn: (warning: StoreWarning) => void,
): Promise<void> {
  try {
    const missing = await run(scripts.permissions, [`${prefix}:{permissions}`], [...commands])
    if (!Array.isArray(missing) || missing.length === 0) return
    const words = missing.map(command => `+${String(command)}`).join(' ')
    warn({
      code: 'WARN_HEADGATE_COMMANDS_FORBIDDEN',
      message: `This Redis user may not run commands that decisions need. Paste into redis-cli, with its name: ACL SETUSER <user> ${words}`,
    })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (!/^NOPERM|can't run this command|unknown command/.test(reason)) return
    warn({
      code: 'WARN_HEADGATE_SCRIPTS_FORBIDDEN',
      message: `This Redis user may not run scripts, which every decision needs. Paste into redis-cli, with its name: ACL SETUSER <user> +evalsha +eval (${reason})`,
    })
  }
}

function warnOfVersion(info: string, warn: (warning: StoreWarning) => void): void {
  const version = field(info, 'redis_version')
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number)
  if (version === undefined || major > FLOOR[0] || (major === FLOOR[0] && minor >= FLOOR[1])) return
  warn({
    code: 'WARN_HEADGATE_REDIS_VERSION',
    message: `Redis ${version} is older than ${FLOOR.join('.')}, the oldest version Headgate is tested with.`,
  })
}

function warnOfEviction(info: string, warn: (warning: StoreWarning) => void): boolean {
  const policy = field(info, 'maxmemory_policy')
  if (policy === undefined || policy === 'noeviction') return false
  warn({
    code: 'WARN_HEADGATE_EVICTION_POLICY',
    message: `maxmemory-policy is ${policy}: when memory is short Redis deletes limits, and callers get them anew. Use noeviction.`,
  })
  return true
}

function field(info: string, name: string): string | undefined {
  return info
    .split(/\r?\n/)
    .find(line => line.startsWith(`${name}:`))
    ?.slice(name.length + 1)
    .trim()
}
