import type { FailureMode } from '../check/check.js'
import { typeOf } from '../subject/subject.js'
import type { ActiveOverride } from './active-override.js'
import type { Config, Enforcement, HeaderStyle, Mode, RuleConfig } from './config.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { RefundRule } from './refund-rule.js'
import type { Statuses } from './statuses.js'
import type { MeterConfig } from './token-meters.js'
import type { Wait } from './wait.js'

/** The levels a limit can apply on, from the most specific to the least. */
export type LevelName = 'route' | 'caller' | 'global'

/** The rule or tier behind a level, and whose budget it charges. */
export interface DeclaredLevel
  extends Enforcement,
    Pick<RuleConfig, 'scope' | 'per' | 'cost' | 'onStoreFailure' | 'headers' | 'wait'> {
  readonly level: LevelName
  /** The name of the rule, or of the part of the file. */
  readonly rule: string
  /** The subject types it is about; the request's first subject of one of them is charged. */
  readonly subjectTypes: readonly string[] | null
  readonly refundIf?: RefundRule
  readonly resetIf?: readonly Statuses[]
  /** Other subjects of the request that are charged together with this one. */
  readonly also?: readonly Also[]
  /** The tokens of a model that it limits, each kind on a level of its own. */
  readonly meters?: readonly LevelMeter[]
}

/** A kind of tokens, and the level on which it is limited. */
export interface LevelMeter {
  readonly meter: MeterConfig
  readonly level: Level
}

/** A subject type and the policy it is charged to. */
export interface Also {
  readonly type: string
  readonly configured: ConfiguredPolicy
}

const NOBODY_ELSE: readonly Also[] = []
const NO_METERS: readonly LevelMeter[] = []

/** Returns which of a request's subjects a level of these types charges. */
export function chargedOf(types: readonly string[] | null, subjects: readonly string[]): string {
  const first = subjects[0] as string
  return types === null ? first : (subjects.find(name => types.includes(typeOf(name))) ?? first)
}

/**
 * The settings of one level, independent of the request. A rule's settings come before its policy's, and those
 * before the file's.
 */
export class Level {
  readonly level: LevelName
  readonly rule: string
  readonly scope: string
  readonly per: RuleConfig['per']
  readonly subjectTypes: readonly string[] | null
  readonly mode: Mode
  readonly enforcePercent: number
  readonly cost: number | null
  readonly onStoreFailure: FailureMode | null
  readonly headers: HeaderStyle | null
  readonly refundIf: RefundRule | null
  readonly resetIf: readonly Statuses[] | null
  readonly wait: Wait | null
  readonly also: readonly Also[]
  readonly meters: readonly LevelMeter[]

  constructor(
    config: Pick<Config, 'mode' | 'enforcePercent' | 'onStoreFailure' | 'headers'>,
    declared: DeclaredLevel,
    readonly configured: ConfiguredPolicy,
    readonly override: ActiveOverride | null,
  ) {
    const ofPolicy = configured.settings
    const declaring = setsEnforcement(declared) ? declared : setsEnforcement(ofPolicy) ? ofPolicy : null
    this.level = declared.level
    this.rule = declared.rule
    this.scope = declared.scope
    this.per = declared.per
    this.subjectTypes = declared.subjectTypes
    // A percentage implies enforcing, so it is never combined with a mode from the level above.
    this.mode = declaring === null ? config.mode : (declaring.mode ?? 'enforce')
    this.enforcePercent = declaring === null ? config.enforcePercent : (declaring.enforcePercent ?? 100)
    this.cost = declared.cost ?? null
    this.onStoreFailure = declared.onStoreFailure ?? ofPolicy.onStoreFailure ?? config.onStoreFailure ?? null
    this.headers = declared.headers ?? config.headers ?? null
    this.refundIf = declared.refundIf ?? null
    this.resetIf = declared.resetIf ?? null
    this.wait = declared.wait ?? null
    this.also = declared.also ?? NOBODY_ELSE
    this.meters = declared.meters ?? NO_METERS
  }
}

function setsEnforcement({ mode, enforcePercent }: Enforcement): boolean {
  return mode !== undefined || enforcePercent !== undefined
}
