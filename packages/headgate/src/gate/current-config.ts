/**
 * The policy file in force, and everything derived from it. Another file or other switches replace it as a whole,
 * so that no request sees half a change.
 */

import type { SingleLimitRequests } from '../fast-path/single-limit-requests.js'
import { type ActiveConfig, activateConfig } from '../policy/active-config.js'
import { type CompiledConfig, compileConfig } from '../policy/compiled-config.js'
import type { Config } from '../policy/config.js'
import { type Control, NORMAL } from '../policy/control.js'
import { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import { targetKey } from '../policy/override.js'
import type { Store } from '../store/store.js'
import { digest } from '../subject/digest.js'
import {
  createSubjectNamer,
  type SubjectInput,
  type SubjectNamer,
  type SubjectOptions,
} from '../subject/subject.js'
import type { Clock } from '../time/clock.js'
import { runAtOnce, runInSlices } from '../time/steps.js'
import type { OverrideCache } from './override-cache.js'
import { refuseReload } from './refusals.js'

const VERSION_LENGTH = 8
const versions = new WeakMap<Config, string>()

export interface CurrentConfigOptions {
  readonly config: Config
  readonly subject: SubjectOptions | undefined
  readonly store: Store
  readonly clock: Clock
  readonly overrides: OverrideCache
  /** Creates the fast path for requests under this configuration. */
  singleLimits(active: ActiveConfig, nameSubject: SubjectNamer): SingleLimitRequests
  warn(message: string): void
  /** Throws for a file that this gate cannot use, beyond what is refused in every file. */
  refuse(config: Config): void
  /** Called for a file that has been put in force. */
  onReload(config: Config): void
}

/** A policy file under the current switches; never changed, only replaced. */
interface InForce {
  readonly config: Config
  readonly loadedAtMs: number
  readonly nameSubject: SubjectNamer
  readonly active: ActiveConfig
  readonly budgets: Ipv6Budgets
  readonly singleLimits: SingleLimitRequests
}

export class CurrentConfig {
  private inForce: InForce
  private reloadsBegun = 0
  private reloadInForce = 0

  constructor(private readonly options: CurrentConfigOptions) {
    const { config, overrides, store } = options
    const nameSubject = this.namerFor(config)
    const compiled = runAtOnce(compile(config, nameSubject))
    const defaultFailure = store.onStoreFailure ?? 'local'
    this.inForce = this.make(nameSubject, compiled, { control: NORMAL, overrides, defaultFailure })
  }

  get now(): InForce {
    return this.inForce
  }

  setControl(control: Control): void {
    const active = activateConfig(this.inForce.active, { ...this.inForce.active, control })
    const singleLimits = this.options.singleLimits(active, this.inForce.nameSubject)
    this.inForce = { ...this.inForce, active, singleLimits }
  }

  reload(config: Config): void {
    const { steps, finish } = this.beginReload(config)
    finish(runAtOnce(steps))
  }

  async reloadInBackground(config: Config): Promise<void> {
    const { steps, finish } = this.beginReload(config)
    finish(await runInSlices(steps))
  }

  /** Returns the steps that prepare a file, and a function that puts it in force unless a later one already is. */
  private beginReload(config: Config) {
    const { options } = this
    refuseReload(config, options.config, options.store)
    options.refuse(config)
    const reload = ++this.reloadsBegun
    const nameSubject = this.namerFor(config)
    const finish = (compiled: CompiledConfig) => {
      if (reload < this.reloadInForce) return
      this.reloadInForce = reload
      this.inForce = this.make(nameSubject, compiled, this.inForce.active)
      options.onReload(config)
    }
    return { steps: compile(config, nameSubject), finish }
  }

  private make(
    nameSubject: SubjectNamer,
    compiled: CompiledConfig,
    atRunTime: Parameters<typeof activateConfig>[1],
  ): InForce {
    const { config } = compiled
    const active = activateConfig(compiled, atRunTime)
    return {
      config,
      loadedAtMs: this.options.clock.unixMs(),
      nameSubject,
      active,
      budgets: this.budgetsFor(compiled),
      singleLimits: this.options.singleLimits(active, nameSubject),
    }
  }

  private namerFor({ secretTypes }: Config): SubjectNamer {
    const { subject, warn } = this.options
    return createSubjectNamer({
      onWarning: ({ code, message }) => warn(`${code}: ${message}`),
      ...subject,
      secretTypes: [...(subject?.secretTypes ?? []), ...secretTypes],
    })
  }

  private budgetsFor({ config, subjects }: CompiledConfig): Ipv6Budgets {
    const { subject: options, overrides, clock } = this.options
    const isOverridden = (subject: string): boolean =>
      overrides.size > 0 && overrides.find(targetKey({ subject }), clock.nowUs()) !== null
    const isNamed = (subject: string): boolean => subjects.has(subject) || isOverridden(subject)
    return new Ipv6Budgets(options?.ipv6Networks ?? config.ipv6Networks, isNamed)
  }
}

function compile(config: Config, nameSubject: SubjectNamer): ReturnType<typeof compileConfig> {
  return compileConfig(config, subject => nameSubject(subject as SubjectInput))
}

/** Returns eight characters that are the same for the same policy file in every process, and differ for another. */
export function versionOf(config: Config): string {
  let version = versions.get(config)
  if (version === undefined) {
    const text = JSON.stringify(config, (_, value) => (value instanceof Map ? [...value] : value))
    version = digest('headgate config', text).slice(0, VERSION_LENGTH)
    versions.set(config, version)
  }
  return version
}
