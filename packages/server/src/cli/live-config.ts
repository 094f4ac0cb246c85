import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Config } from 'headgate'
import { type WatchedConfig, watchConfig } from 'headgate/config'
import { configWithSettings, type Settings } from 'headgate/internal'
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
}

const DEFAULT_FILE = 'headgate.yaml'

/**
 * Opens the configuration from flags, environment, file and built-in values, in this order of precedence, and keeps
 * it up to date: the file is read again when it changes and on SIGHUP.
 */
export async function openConfig({ file, demo, settings, log }: ConfigSources): Promise<LiveConfig> {
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
  return watched(path, settings, log)
}

async function watched(path: string, settings: Settings, log: WriteLine): Promise<LiveConfig> {
  let apply: ((config: Config) => Promise<void>) | null = null
  let rejected = 0
  const watcher: WatchedConfig = await watchConfig(path, {
    async onConfig(config) {
      await apply?.(configWithSettings(settings, config))
      log(`${path}: reloaded`)
    },
    onError(error) {
      rejected++
      const { message: cause } = error as Error
      log(`${path}: NOT in use, the last good configuration stays: ${cause}`, {
        level: 'error',
        cause,
        consequence: 'the last good configuration stays',
      })
    },
  })
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

function fixed(config: Config): LiveConfig {
  return {
    config,
    onChange: () => {},
    text: async () => null,
    state: () => ({ config: 'current', rejectedConfigs: 0 }),
    close: () => {},
  }
}
