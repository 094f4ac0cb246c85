export type { Algorithm, Limit, Quota } from './algorithms/algorithm.js'
export type { ConcurrencyOptions } from './algorithms/concurrency.js'
export { concurrency } from './algorithms/concurrency.js'
export type { Duration } from './algorithms/durations.js'
export type { CounterOptions } from './algorithms/sliding-window-counter.js'
export { slidingWindowCounter } from './algorithms/sliding-window-counter.js'
export { slidingWindowLog } from './algorithms/sliding-window-log.js'
export type { TokenBucketOptions } from './algorithms/token-bucket.js'
export { tokenBucket } from './algorithms/token-bucket.js'
export type { WindowOptions } from './algorithms/window.js'
export type { Check, DecisionSource, FailureMode, Refund, Renewal } from './check/check.js'
export type { AlsoCharged, CheckOptions } from './check/check-options.js'
export type { PendingCheck } from './check/pending-check.js'
export type { Plan } from './check/plan.js'
export type { GraphqlCostOptions } from './cost/graphql-cost.js'
export { graphqlCost } from './cost/graphql-cost.js'
export type { CountedFields } from './cost/graphql-definitions.js'
export { jsonRpcCost } from './cost/json-rpc-cost.js'
export type { Decision, LimitVerdict, Reason } from './decision/decision.js'
export type {
  HeaderDraft,
  HeaderField,
  HeaderOptions,
  HideableName,
  ResponseOptions,
} from './decision/headers.js'
export { decisionHeaders } from './decision/headers.js'
export type { Problem, ProblemBody } from './decision/problem.js'
export { decisionProblem } from './decision/problem.js'
export type { ErrorCode } from './errors/headgate-error.js'
export { HeadgateError, isHeadgateError } from './errors/headgate-error.js'
export type { Mistake } from './errors/mistake.js'
export type { LimiterCounts, ShadowCounts } from './limiter/counts.js'
export type { AcquireOptions } from './limiter/fair-queue.js'
export type { GivenLimit, GivenLimits, GivenLimitsAnswer } from './limiter/given-limits.js'
export type { InspectedLimit, Inspection, InspectOptions } from './limiter/inspection.js'
export type {
  ConfigLimiterOptions,
  FaultFacts,
  Limiter,
  LimiterOptions,
  RuleLimiter,
} from './limiter/limiter.js'
export { createLimiter } from './limiter/limiter.js'
export type { ControlApi, OverridesApi } from './limiter/operators.js'
export type { RefundOptions, Reservation } from './limiter/refunds.js'
export type { DecisionEvent, HeadgateEvent, LimiterEvent } from './observe/event.js'
export type { Logger } from './observe/logger.js'
export { claimedMethods } from './policy/claimed-methods.js'
export type { Config, HeaderStyle } from './policy/config.js'
export type { Control } from './policy/control.js'
export type { ExplainedLevel, Explanation } from './policy/explanation.js'
export type { LeaseOptions } from './policy/leases.js'
export type { Override, OverrideOptions, OverrideTarget, Replacement } from './policy/override.js'
export type { ChangedLimits, OverrideEffect } from './policy/override-effect.js'
export type { PolicyOptions } from './policy/policies.js'
export type { Rate, RefundBound } from './policy/refund-rule.js'
export type { RequestFacts } from './policy/request-facts.js'
export type { TierOptions } from './policy/tiers.js'
export { defaultTiers } from './policy/tiers.js'
export type { ControlReading, ControlStore, StoredEntry, StoredOverrides } from './store/control-store.js'
export type { MemoryStore, MemoryStoreOptions } from './store/memory/memory-store.js'
export { memoryStore } from './store/memory/memory-store.js'
export type { MaybePromise, Store } from './store/store.js'
export type {
  ClientAddress,
  ClientAddressOptions,
  ForwardedHeader,
  TrustedProxies,
} from './subject/client-address.js'
export { createClientAddress, limitedAddress, peerAddress } from './subject/client-address.js'
export type {
  Ipv6Networks,
  StoredSubject,
  Subject,
  SubjectInput,
  SubjectOptions,
  SubjectWarning,
} from './subject/subject.js'
export type { Clock } from './time/clock.js'
