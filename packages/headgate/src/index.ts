export type { GraphqlCostOptions } from './cost/graphql-cost.js'
export { graphqlCost } from './cost/graphql-cost.js'
export type { CountedFields } from './cost/graphql-definitions.js'
export { jsonRpcCost } from './cost/json-rpc-cost.js'
export type { Decision } from './decision/decision.js'
export type { HeaderField } from './decision/header-field.js'
export type {
  HeaderDraft,
  HeaderOptions,
  HideableName,
  ResponseOptions,
} from './decision/headers.js'
export { decisionHeaders } from './decision/headers.js'
export type { Problem, ProblemBody } from './decision/problem.js'
export { decisionProblem } from './decision/problem.js'
export type { Reason } from './decision/reason.js'
export type { LimitVerdict } from './decision/verdicts.js'
export type { Limit, Quota } from './engine/limit.js'
export type { Answer, Check, FailureMode, Question, Refund, Verdict } from './engine/question.js'
export type { ErrorCode } from './errors/headgate-error.js'
export { HeadgateError, isHeadgateError } from './errors/headgate-error.js'
export type { Mistake } from './errors/mistake.js'
export type { GateCounts, ShadowCounts } from './gate/counts.js'
export type { ExplainedLevel, Explanation } from './gate/explanation.js'
export type { Gate, GateOptions } from './gate/gate.js'
export { createGate } from './gate/gate.js'
export type { GivenLimit, GivenLimits, GivenLimitsAnswer } from './gate/given-limits.js'
export type { InspectedLimit, Inspection, InspectOptions } from './gate/inspection.js'
export type { ControlApi, OverridesApi } from './gate/operators.js'
export type { AlsoAsked, Ask } from './limiter/ask.js'
export type { FaultFacts, Limiter, LimiterCounts, LimiterOptions } from './limiter/limiter.js'
export { createLimiter } from './limiter/limiter.js'
export type { RefundOptions, Reservation } from './limiter/refunds.js'
export type { Patience } from './limiter/turns.js'
export type { DecisionEvent, GateEvent, HeadgateEvent } from './observe/event.js'
export type { Logger } from './observe/logger.js'
export { claimedMethods } from './policy/claimed-methods.js'
export type { Config, HeaderStyle } from './policy/config.js'
export type { Control } from './policy/control.js'
export type { Duration } from './policy/durations.js'
export type { LeaseOptions } from './policy/leases.js'
export type {
  ConcurrencyOptions,
  CounterOptions,
  TokenBucketOptions,
  WindowOptions,
} from './policy/limits.js'
export { concurrency, slidingWindowCounter, slidingWindowLog, tokenBucket } from './policy/limits.js'
export type { Override, OverrideOptions, OverrideTarget, Replacement } from './policy/override.js'
export type { PolicyOptions } from './policy/policies.js'
export type { Rate, RefundBound } from './policy/refund-rule.js'
export type { RequestFacts } from './policy/request-facts.js'
export type { TierOptions } from './policy/tiers.js'
export { defaultTiers } from './policy/tiers.js'
export type { ControlReading, ControlStore, StoredEntry, StoredOverrides } from './store/control-store.js'
export type { MemoryStoreOptions } from './store/memory/memory-store.js'
export { memoryStore } from './store/memory/memory-store.js'
export type { Eventually, Source, Store } from './store/store.js'
export type { ClientAddress, ClientAddressOptions, ForwardedHeader } from './subject/client-address.js'
export { createClientAddress, limitedAddress, peerAddress } from './subject/client-address.js'
export type {
  Ipv6Networks,
  StoredSubject,
  Subject,
  SubjectInput,
  SubjectOptions,
  SubjectWarning,
} from './subject/subject.js'
export type { TrustedProxies } from './subject/trusted-proxies.js'
export type { Clock } from './time/clock.js'
