import type { FailureMode } from '../engine/question.js'
import type { ActiveOverride } from './active-override.js'
import type { Config, Enforcement, HeaderStyle, Mode } from './config.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { Statuses } from './statuses.js'

export type LevelName = 'route' | 'caller' | 'global'

/** The rule or tier that speaks on a level, and whose budget it speaks about. */
export interface Speaker extends Enforcement {
  readonly level: LevelName
  /** The rule that speaks: its name, or the part of the file that does. */
  readonly rule: string
  readonly scope: string
  /** Whether one budget is all callers', or each has its own. */
  readonly per: 'caller' | 'everyone'
  /** The types of subject it is about; the first of the request that has one of them is charged. */
  readonly subjectTypes: readonly string[] | null
  readonly cost?: number
  readonly onStoreFailure?: FailureMode
  readonly headers?: HeaderStyle
  readonly refundIf?: readonly Statuses[]
  /** Other subjects of the request that are charged together with this one. */
  readonly also?: readonly Also[]
}

/** A type of subject and what it is charged to. */
export interface Also {
  readonly type: string
  readonly configured: ConfiguredPolicy
}

const NOBODY_ELSE: readonly Also[] = []

/** The settings of one level, whoever asks. A rule comes before its policy, and the policy before the file. */
export class Level {
  readonly level: LevelName
  readonly rule: string
  readonly scope: string
  readonly per: 'caller' | 'everyone'
  readonly subjectTypes: readonly string[] | null
  readonly mode: Mode
  readonly enforcePercent: number
  readonly cost: number | null
  readonly onStoreFailure: FailureMode | null
  readonly headers: HeaderStyle | null
  readonly refundIf: readonly Statuses[] | null
  readonly also: readonly Also[]

  constructor(
    config: Config,
    speaker: Speaker,
    readonly configured: ConfiguredPolicy,
    readonly override: ActiveOverride | null,
  ) {
    const ofPolicy = configured.settings
    const speaks = saysHowFar(speaker) ? speaker : saysHowFar(ofPolicy) ? ofPolicy : null
    this.level = speaker.level
    this.rule = speaker.rule
    this.scope = speaker.scope
    this.per = speaker.per
    this.subjectTypes = speaker.subjectTypes
    // A percentage speaks of enforcing: together with the mode above it, it would say two things.
    this.mode = speaks === null ? config.mode : (speaks.mode ?? 'enforce')
    this.enforcePercent = speaks === null ? config.enforcePercent : (speaks.enforcePercent ?? 100)
    this.cost = speaker.cost ?? null
    this.onStoreFailure = speaker.onStoreFailure ?? ofPolicy.onStoreFailure ?? config.onStoreFailure ?? null
    this.headers = speaker.headers ?? config.headers ?? null
    this.refundIf = speaker.refundIf ?? null
    this.also = speaker.also ?? NOBODY_ELSE
  }
}

function saysHowFar({ mode, enforcePercent }: Enforcement): boolean {
  return mode !== undefined || enforcePercent !== undefined
}
