import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Config } from 'headgate'
import { type ConfigWarning, type WatchedConfig, watchConfig } from 'headgate/config'
import { configWithSettings, formatIssue, type Settings } from 'headgate/internal'
import type { ConfigCounts } from '../admin/probes.js'
import type { WriteLine } from '../log/write-line.js'
import { UsageError } from './usage-error.js'

/** The configuration of a running server. */
export interface LiveConfig {
  readonly config: Config
  /** Sets the function that applies a new configuration; it rejects with the reason if it cannot. */
  onChange(apply: (config: Config) => Promise<void>): void
  state(): ConfigCounts
  /** The text of the file as it is on disk now; null if there is none. */
  text(): Promise<{ readonly fileName: string; readonly text: string } | null>
  close(): void
}

export interface ConfigSources {
  /** The file named on the command line. */
  readonly file?: string
  /** Whether no file is needed. */
  readonly demo: boolean
  readonly settings: Settings
  readonly log: WriteLine
  /** Where parts of the file that are probably mistakes are reported: by one of several processes. */
  readonly warn: WriteLine
}

const DEFAULT_FILE = 'headgate.yaml'

/**
 * Opens the configuration from flags, environment, file and built-in values, in this order of precedence, and keeps
 * it up to date: the file is read again when it changes and on SIGHUP.
 */
export async function openConfig({ file, demo, settings, log, warn }: ConfigSources): Promise<LiveConfig> {
  const named = file ?? settings.rulesPath
  const path = named ?? DEFAULT_FILE
  if (named === null && !existsSync(DEFAULT_FILE)) {
    if (demo || settings.policy !== null || settings.distributed)
      return fixed(configWithSettings(settings, null))
    throw new UsageError({
      field: DEFAULT_FILE,
      expected: 'a file that can be read',
      got: 'no such file; name one with --config, or begin with --demo',
    })
  }
  return watched(path, settings, log, createDoubts(path, warn))
}

async function watched(
  path: string,
  settings: Settings,
  log: WriteLine,
  doubts: Doubts,
): Promise<LiveConfig> {
  let apply: ((config: Config) => Promise<void>) | null = null
  let rejected = 0
  const watcher: WatchedConfig = await watchConfig(path, {
    onWarning: doubts.add,
    async onConfig(config) {
      await apply?.(configWithSettings(settings, config))
      log(`${path}: reloaded`)
      doubts.tell()
    },
    onError(error) {
      rejected++
      doubts.drop()
      const { message: cause } = error as Error
      log(`${path}: NOT in use, the last good configuration stays: ${cause}`, {
        level: 'error',
        cause,
        consequence: 'the last good configuration stays',
      })
    },
  })
  doubts.tell()
  const onHangUp = () => void watcher.reload()
  // In a terminal, SIGHUP means that the terminal is gone, so the process ends as others do.
  if (!process.stdout.isTTY) process.on('SIGHUP', onHangUp)
  const config = watcher.config
  return {
    config: configWithSettings(settings, config),
    onChange(given) {
      apply = given
      // It may have changed while the server was starting.
      if (watcher.config !== config) void watcher.reload()
    },
    text: async () => ({ fileName: basename(path), text: await readFile(path, 'utf8') }),
    state: () => ({ config: watcher.isStale ? 'stale' : 'current', rejectedConfigs: rejected }),
    close() {
      process.off('SIGHUP', onHangUp)
      watcher.close()
    },
  }
}

/** What is probably a mistake in the file that is being read. */
interface Doubts {
  add(warning: ConfigWarning): void
  /** The file is in force: reports what was not reported of the one before. */
  tell(): void
  /** It is not. */
  drop(): void
}

function createDoubts(path: string, warn: WriteLine): Doubts {
  let read: ConfigWarning[] = []
  let told = new Set<string>()
  // The lines move when something above them changes.
  const nameOf = (warning: ConfigWarning): string => JSON.stringify([warning.path, warning.message])
  return {
    add: warning => void read.push(warning),
    tell() {
      for (const warning of read) {
        if (told.has(nameOf(warning))) continue
        const { code, message: cause } = warning
        warn(`${path}:${formatIssue(warning)} (${code})`, { level: 'warn', cause, code })
      }
      told = new Set(read.map(nameOf))
      read = []
    },
    drop() {
      read = []
    },
  }
}

function fixed(config: Config): LiveConfig {
  return {
    config,
    onChange: () => {},
    text: async () => null,
    state: () => ({ config: 'current', rejectedConfigs: 0 }),
    close: () => {},
  }
}
