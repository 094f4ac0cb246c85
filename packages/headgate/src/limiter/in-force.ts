/**
 * The policies in force, and everything derived from them. Another file or other switches replace it as a whole, so that
 * no request sees half a change.
 */
import { type Check, stateOf } from '../check/check.js'
import type { CheckOptions } from '../check/check-options.js'
import type { Plans } from '../check/plans.js'
import type { ConfiguredLimit } from '../observe/statistics/statistics.js'
import type { ActiveConfig } from '../policy/active-config.js'
import {
  type ActivePolicies,
  type AtRunTime,
  activatePolicies,
  type WrittenPolicies,
} from '../policy/active-policies.js'
import { askedLevel, GLOBAL } from '../policy/asked-level.js'
import type { CompiledConfig } from '../policy/compiled-config.js'
import { type Config, RULES } from '../policy/config.js'
import { type Control, NORMAL } from '../policy/control.js'
import { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import { type OverrideTarget, targetKey } from '../policy/override.js'
import type { Concerned } from '../policy/override-effect.js'
import type { RuleResolver } from '../policy/rule-resolver.js'
import type { KeptState, Rules } from '../policy/rules.js'
import type { Store } from '../store/store.js'
import {
  createSubjectNamer,
  type SubjectInput,
  type SubjectNamer,
  type SubjectOptions,
  type SubjectWarning,
} from '../subject/subject.js'
import type { Clock } from '../time/clock.js'
import { runAtOnce, runInSlices } from '../time/steps.js'
import { eachStateOnce, type InspectOptions } from './inspection.js'
import { ANYBODY, NamedPolicies } from './named-policies.js'
import type { OverrideCache } from './override-cache.js'

export interface InForceOptions {
  /** Policies and tiers written in code, or the policy file. */
  readonly written: WrittenPolicies | Config
  readonly subject: SubjectOptions | undefined
  readonly store: Store
  readonly clock: Clock
  readonly overrides: OverrideCache
  readonly plans: Plans
  warn(message: string, about?: string): void
  warnSubject(warning: SubjectWarning): void
  /** Called for a file that has been put in force. */
  onReload(config: Config): void
}

/** What is in force now; never changed, only replaced. */
export interface Current {
  readonly nameSubject: SubjectNamer
  readonly active: ActivePolicies
  readonly budgets: Ipv6Budgets
  readonly names: NamedPolicies
  /** Null if there is no policy file. */
  readonly file: CurrentFile | null
}

/** What a policy file adds. */
export interface CurrentFile {
  readonly config: Config
  readonly loadedAtMs: number
  readonly rules: Rules
  readonly active: ActiveConfig
  readonly requests: RuleResolver
}

export class InForce {
  #now: Current
  #reloadsBegun = 0
  #reloadInForce = 0
  readonly #options: InForceOptions

  constructor(options: InForceOptions) {
    this.#options = options
    const { written, overrides, store } = options
    const atRunTime = { control: NORMAL, overrides, defaultFailure: store.onStoreFailure ?? 'local' } as const
    if (isConfig(written)) {
      const rules = rulesOf(written)
      const nameSubject = this.#namerFor(written.secretTypes)
      const compiled = runAtOnce(compile(rules, written, nameSubject))
      this.#now = this.#withFile(rules, compiled, nameSubject, atRunTime)
    } else {
      const nameSubject = this.#namerFor([])
      const budgets = this.#budgetsFor(undefined, new Map())
      this.#now = this.#withActive(activatePolicies(written, atRunTime), nameSubject, budgets, null)
    }
  }

  get now(): Current {
    return this.#now
  }

  setControl(control: Control): void {
    const { active, file, nameSubject, budgets } = this.#now
    const atRunTime = { ...active, control }
    if (file === null) {
      this.#now = this.#withActive(activatePolicies(active, atRunTime), nameSubject, budgets, null)
    } else {
      const activated = file.rules.activate(file.active, atRunTime)
      this.#now = this.#withActive(activated, nameSubject, budgets, { ...file, active: activated })
    }
  }

  /** The limits of the first policies, then tiers, in force: whole ones, `max` limits at most. */
  configuredLimits(max: number): readonly ConfiguredLimit[] {
    const { configuredPolicies, configuredTiers } = this.#now.active
    const found: ConfiguredLimit[] = []
    for (const { policy } of [...configuredPolicies.values(), ...configuredTiers.values()]) {
      if (found.length + policy.limits.length > max) break
      for (const { limit } of policy.limits) {
        found.push({ policy: policy.name, tier: policy.tier, limit: limit.id, units: limit.limit })
      }
    }
    return found
  }

  /** The states about a subject: of a policy or tier, or all there are. */
  statesOf(subject: string, options?: CheckOptions<string, string>): Check[] {
    const { names, file } = this.#now
    if (options !== undefined) return names.statesOf(subject, options)
    if (file !== null) return eachStateOnce(this.keptAbout(subject, {}).states).map(({ check }) => check)
    const ofPolicies = names.policyNames.flatMap(policy => names.statesOf(subject, { policy }))
    return [...ofPolicies, ...names.tierNames.flatMap(tier => names.statesOf(subject, { tier }))]
  }

  /** Those that are about the subject alone, and not about all it shares with others; each once. */
  ownStatesOf(name: string, options?: CheckOptions<string, string>): Check[] {
    const own = this.statesOf(name, options).filter(({ subject }) => subject === name)
    return [...new Map(own.map(check => [stateOf(check), check])).values()]
  }

  /** The tier of a subject, and the states about it with what mentions each. One that several mention is there several times. */
  keptAbout(
    subject: string,
    options: InspectOptions,
  ): { readonly tier: string | null; readonly states: readonly KeptState[] } {
    const { tier = null, scope = GLOBAL } = options
    const { names, file } = this.#now
    if (file !== null) {
      const nowUs = this.#options.clock.nowUs()
      const states = file.rules.statesAbout(file.active, subject, { tier, scope }, nowUs)
      return { tier: file.rules.tierOf(file.active, subject, tier, nowUs), states }
    }
    const ofTier = tier === null ? [] : names.statesOf(subject, { tier, scope })
    const ofPolicies = names.policyNames.flatMap(policy => names.statesOf(subject, { policy, scope }))
    return { tier, states: [...asked(ofTier, true), ...asked(ofPolicies, false)] }
  }

  /** Finds whose limits an override would replace: by the rules, or else in every policy and tier that can be asked. */
  concernedBy(active: ActivePolicies, target: OverrideTarget): Concerned {
    const { file } = this.#now
    const nowUs = this.#options.clock.nowUs()
    if (file !== null) return file.rules.concernedBy(active as ActiveConfig, target, nowUs)
    const { policy: only } = target
    const charges =
      only === undefined
        ? [
            ...[...active.policies.keys()].map(policy => ({ policy })),
            ...[...active.tiers.keys()].map(tier => ({ tier })),
          ]
        : [{ policy: only }]
    const subject = 'subject' in target ? target.subject : ANYBODY
    const levels = charges.map(charge => askedLevel(active, { subject, charge, scope: GLOBAL }, nowUs))
    return { levels, otherRules: new Map(), otherPolicies: new Map() }
  }

  async reload(config: Config): Promise<void> {
    const { store, onReload } = this.#options
    const rules = rulesOf(config)
    rules.rejectMovedFleet(config, this.#options.written as Config, store.control?.fleet)
    const reload = ++this.#reloadsBegun
    const nameSubject = this.#namerFor(config.secretTypes)
    const compiled = await runInSlices(compile(rules, config, nameSubject))
    // A reload that began later is in force already.
    if (reload < this.#reloadInForce) return
    this.#reloadInForce = reload
    this.#now = this.#withFile(rules, compiled, nameSubject, this.#now.active)
    onReload(config)
  }

  #withFile(
    rules: Rules,
    compiled: CompiledConfig,
    nameSubject: SubjectNamer,
    atRunTime: AtRunTime,
  ): Current {
    const { config, subjects } = compiled
    const active = rules.activate(compiled, atRunTime)
    const budgets = this.#budgetsFor(config.ipv6Networks, subjects)
    const loadedAtMs = this.#options.clock.unixMs()
    return this.#withActive(active, nameSubject, budgets, { config, loadedAtMs, rules, active })
  }

  #withActive(
    active: ActivePolicies,
    nameSubject: SubjectNamer,
    budgets: Ipv6Budgets,
    file: Omit<CurrentFile, 'requests'> | null,
  ): Current {
    const { plans, clock, warn } = this.#options
    const shared = { nameSubject, budgets, plans, clock, warn }
    return {
      nameSubject,
      active,
      budgets,
      names: new NamedPolicies({ ...shared, active }),
      file:
        file === null ? null : { ...file, requests: file.rules.resolver({ ...shared, active: file.active }) },
    }
  }

  #namerFor(secretTypes: readonly string[]): SubjectNamer {
    const { subject, warnSubject } = this.#options
    return createSubjectNamer({
      onWarning: warnSubject,
      ...subject,
      secretTypes: [...(subject?.secretTypes ?? []), ...secretTypes],
    })
  }

  #budgetsFor(
    networks: Config['ipv6Networks'] | undefined,
    subjects: CompiledConfig['subjects'],
  ): Ipv6Budgets {
    const { subject: options, overrides, clock } = this.#options
    const isOverridden = (subject: string): boolean =>
      overrides.size > 0 && overrides.find(targetKey({ subject }), clock.nowUs()) !== null
    const isNamed = (subject: string): boolean => subjects.has(subject) || isOverridden(subject)
    return new Ipv6Budgets(options?.ipv6Networks ?? networks, isNamed)
  }
}

function asked(checks: readonly Check[], isExpected: boolean): KeptState[] {
  return checks.map(check => ({ rule: 'asked', check: { ...check, cost: 1 }, isExpected }))
}

function isConfig(written: WrittenPolicies | Config): written is Config {
  return 'rules' in written
}

/** What a policy file carries. */
export function rulesOf(config: Config): Rules {
  return config[RULES] as Rules
}

function compile(rules: Rules, config: Config, nameSubject: SubjectNamer): ReturnType<Rules['compile']> {
  return rules.compile(config, subject => nameSubject(subject as SubjectInput))
}
