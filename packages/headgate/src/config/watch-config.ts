import type { FSWatcher } from 'node:fs'
import { ignoreRejection } from '../errors/ignore-rejection.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import type { Config } from '../policy/config.js'
import { systemTimers, type Timers } from '../time/clock.js'
import { readConfigText } from './load-config.js'
import { parseBeside } from './parse-beside.js'
import { parseConfig, type ReadOptions } from './parse-config.js'

export interface WatchOptions extends ReadOptions {
  /** Called with each new configuration. If it throws or rejects, the file is treated as invalid. */
  onConfig(config: Config): unknown
  /** Called if a changed file cannot be used, in which case the last good configuration stays. Default: logs it. */
  onError?(error: unknown): void
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /** How often the file is checked, in case the system does not report a change. Default 2000. */
  readonly pollMs?: number
  readonly timers?: Timers
}

/** A policy file that is being watched. */
export interface WatchedConfig {
  /** The last good configuration. */
  readonly config: Config
  /** Whether the file has since changed to one that cannot be used. */
  readonly isStale: boolean
  /** Reads the file now, changed or not. Resolves when the outcome has been reported. */
  reload(): Promise<void>
  close(): void
}

const POLL_MS = 2_000
/** Writing a file causes several events; after the first we wait for the others. */
const SETTLE_MS = 100

/**
 * Loads a policy file and watches it. Rejects if it cannot be used at first. Later, a broken file is reported to
 * `onError` once and the last good configuration stays. Does not keep the process alive.
 *
 * @example
 * await watchConfig('headgate.yaml', { onConfig: config => limiter.reload(config), onError: console.error })
 */
export async function watchConfig(file: string, options: WatchOptions): Promise<WatchedConfig> {
  const { watch } = await import('node:fs')
  const { stat } = await import('node:fs/promises')
  const { dirname } = await import('node:path')
  const logger = parseLogger(options.logger)
  const { onConfig, onError = logError, pollMs = POLL_MS, timers = systemTimers, ...reading } = options
  // Taken before the file is read, so that a replacement in between is noticed at the next check.
  let seen = await signature()
  let text = await readConfigText(file)
  let config = await parseConfig(text, file, reading)
  /** The last complaint about the file, so that it is not repeated at every check. */
  let objection: string | null = null
  let closed = false
  let pending: Promise<void> = Promise.resolve()
  let cancelSettle: (() => void) | null = null

  function logError(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error)
    logger.error({ err: error }, `the last good policy file stays in force, because ${why}`)
  }

  /** Changes with the file's content, even if an editor or orchestrator replaces the file. */
  async function signature(): Promise<string> {
    try {
      const { ino, mtimeMs, size } = await stat(file)
      return `${ino} ${mtimeMs} ${size}`
    } catch {
      return 'none'
    }
  }

  async function look(force: boolean): Promise<void> {
    const now = await signature()
    if (closed || (!force && now === seen)) return
    try {
      const latest = await readConfigText(file)
      // Only now: a file that could not be read, for lack of descriptors or permissions, must be tried again.
      seen = now
      if (!force && latest === text && objection === null) return
      const changed = await parseBeside(latest, file, reading)
      if (closed) return
      await onConfig(changed)
      text = latest
      config = changed
      objection = null
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error)
      const isNews = force || said !== objection
      objection = said
      if (isNews) tell(error)
    }
  }

  /** A failing handler must not stop the watching. */
  function tell(error: unknown): void {
    try {
      ignoreRejection(onError(error))
    } catch (fault) {
      logError(fault)
    }
  }

  /** One at a time, so that an older file cannot overtake a newer one. */
  function enqueue(force: boolean): Promise<void> {
    pending = pending.then(() => look(force))
    return pending
  }

  function lookSoon(): void {
    cancelSettle ??= timers.inBackground(SETTLE_MS, () => {
      cancelSettle = null
      void enqueue(false)
    })
  }

  function poll(): () => void {
    let cancel = timers.inBackground(pollMs, function again() {
      void enqueue(false)
      cancel = timers.inBackground(pollMs, again)
    })
    return () => cancel()
  }

  /**
   * Watches the folder, because a watch on the file would stay with the old one when another is renamed over it.
   */
  function watchFolder(): FSWatcher | null {
    try {
      const watcher = watch(dirname(file), { persistent: false }, lookSoon)
      watcher.on('error', () => watcher.close())
      return watcher
    } catch {
      // The system has no watch left to give; polling covers for that.
      return null
    }
  }

  const folder = watchFolder()
  const cancelPoll = poll()
  return {
    get config() {
      return config
    },
    get isStale() {
      return objection !== null
    },
    reload: () => enqueue(true),
    close() {
      closed = true
      folder?.close()
      cancelPoll()
      cancelSettle?.()
    },
  }
}
