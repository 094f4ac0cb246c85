import type { FSWatcher } from 'node:fs'
import { letFail } from '../errors/let-fail.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import type { Config } from '../policy/config.js'
import { systemTimers, type Timers } from '../time/clock.js'
import { readConfigText } from './load-config.js'
import { parseBeside } from './parse-beside.js'
import { parseConfig } from './parse-config.js'

export interface WatchOptions {
  /**
   * Told each new configuration; a promise it returns is waited for. What it throws or rejects with counts as a mistake
   * in the file.
   */
  onConfig(config: Config): unknown
  /** Told why a changed file cannot be used; the last good configuration stays. Default: the logger. */
  onError?(error: unknown): void
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /** How often the file is looked at in case the system does not say that it changed. Default 2000. */
  readonly pollMs?: number
  readonly timers?: Timers
}

/** A policy file that is being watched. */
export interface WatchedConfig {
  /** The last good configuration. */
  readonly config: Config
  /** Whether the file has changed since into one that cannot be used. */
  readonly isStale: boolean
  /** Reads the file now, changed or not, and resolves when its outcome has been told. */
  reload(): Promise<void>
  close(): void
}

const POLL_MS = 2_000
/** Writing a file is several changes; the first is waited on for the others. */
const SETTLE_MS = 100

/**
 * Loads a policy file and watches it. Rejects if it cannot be used at first; after that, a broken file is told to
 * `onError` once and the last good configuration holds. Does not keep the process alive.
 */
export async function watchConfig(file: string, options: WatchOptions): Promise<WatchedConfig> {
  const { watch } = await import('node:fs')
  const { stat } = await import('node:fs/promises')
  const { dirname } = await import('node:path')
  const logger = parseLogger(options.logger)
  const { onConfig, onError = logError, pollMs = POLL_MS, timers = systemTimers } = options
  // Taken before the file is read: whoever replaces it meanwhile is noticed at the next look.
  let seen = await signature()
  let text = await readConfigText(file)
  let config = await parseConfig(text, file)
  /** The last complaint about the file, so that it is not repeated at every look. */
  let objection: string | null = null
  let closed = false
  let underWay: Promise<void> = Promise.resolve()
  let cancelSettle: (() => void) | null = null

  function logError(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error)
    logger.error({ err: error }, `the last good policy file stays in force, because ${why}`)
  }

  /** Changes with the file's content, also when an editor or an orchestrator puts another file in its place. */
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
      // Not before: a file that could not be read, for want of descriptors or rights, is tried again until it can be.
      seen = now
      if (!force && latest === text && objection === null) return
      const changed = await parseBeside(latest, file)
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

  /** Whoever cannot be told must not keep the file from being watched. */
  function tell(error: unknown): void {
    try {
      letFail(onError(error))
    } catch (fault) {
      logError(fault)
    }
  }

  /** One after the other, so that an older file cannot overtake a newer one. */
  function enqueue(force: boolean): Promise<void> {
    underWay = underWay.then(() => look(force))
    return underWay
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
   * We watch the folder: when another file is renamed to this name, a watch on the file would stay with the old one.
   */
  function watchFolder(): FSWatcher | null {
    try {
      const watcher = watch(dirname(file), { persistent: false }, lookSoon)
      watcher.on('error', () => watcher.close())
      return watcher
    } catch {
      // The system has no watch left to give; looking from time to time is the net for that.
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
