/** Where the command line asks, changes switches and sets overrides: a running server, or Redis itself. */
import type {
  CheckOptions,
  Control,
  CreditAnswer,
  CreditOptions,
  Decision,
  Inspection,
  Override,
  QuotaUsage,
  RequestFacts,
  RuleLimiter,
  SubjectInput,
} from 'headgate'
import type {
  InspectOptions,
  LostSettings,
  OverrideEffect,
  OverrideOptions,
  OverrideTarget,
} from 'headgate/internal'
import { type Denial, isReference } from 'headgate/internal'
import type { ShownDenial } from '../observe/denial-log.js'
import type { Snapshot } from '../observe/snapshot.js'
import type { UsageAsk, UsagePage, UsagePages } from '../redis/usage-pages.js'
import { RejectedError } from './operator-errors.js'

/** A question about a policy or tier by name, or about a request by the rules. */
export type Question = { readonly subject: SubjectInput } & (
  | { readonly ask: CheckOptions<string, string> }
  | { readonly request: Omit<RequestFacts, 'subject'> }
)

/** A rejected subject, as shown to operators. */
export interface RejectedSubject extends Pick<Inspection, 'subject' | 'tier' | 'limits'> {
  readonly reference: string
  readonly denials: readonly Pick<Denial, 'atMs' | 'policy' | 'limit' | 'reason'>[]
}

/** A decision as JSON. */
export type DecisionValue = ReturnType<Decision['toJSON']>

export interface OperatorClient {
  control(): Promise<Control>
  /** `appliedTo: 'server'`: Redis could not be reached, and only the server that was asked has changed. */
  setControl(change: Partial<Control>): Promise<Control & { readonly appliedTo?: 'server' }>
  overrides(): Promise<readonly Override[]>
  /** Sets an override, and returns what it changes. */
  setOverride(override: OverrideOptions): Promise<OverrideEffect>
  /** Returns what an override would change, and sets none. */
  previewOverride(override: OverrideOptions): Promise<OverrideEffect>
  removeOverride(target: OverrideTarget): Promise<boolean>
  /** Decides; charges unless it is a peek. */
  decide(action: 'check' | 'peek', question: Question): Promise<DecisionValue>
  inspect(subject: SubjectInput, options: InspectOptions): Promise<Inspection>
  /** Looks up whom a reference rejected, and why; only a running server knows. */
  rejected(reference: string): Promise<RejectedSubject>
  /** Returns the state of a server and its fleet. */
  stats(): Promise<Snapshot>
  /** Returns what a subject has used of its quotas: all of them, or those of a policy or tier. */
  usage(subject: SubjectInput, ask: Readonly<Record<string, string>>): Promise<readonly QuotaUsage[]>
  /** Returns a page of what all callers have used. */
  usagePage(asked: UsageAsk): Promise<UsagePage>
  /** Adds units to quotas. */
  credit(
    subject: SubjectInput,
    units: number,
    options: Readonly<Record<string, string>>,
  ): Promise<CreditAnswer>
  /** Forgets what a subject has used: everything, or in one policy or tier. */
  reset(subject: SubjectInput, ask: CheckOptions<string, string> | undefined): Promise<void>
  close(): Promise<void>
}

/** The client of a running server, which also remembers what Redis does not. */
export interface ServerClient extends OperatorClient {
  /** Writes back what the store has lost and the server still knows; returns it, or null. */
  restore(): Promise<LostSettings | null>
  /** Drops it instead. */
  clearLost(): Promise<LostSettings | null>
  /** Returns kept denials with this reference or of the request with this id, the newest first. */
  denials(
    by: { readonly reference: string } | { readonly requestId: string },
  ): Promise<readonly ShownDenial[]>
}

const NO_REFERENCES = new RejectedError(
  '--server: expected a running headgate serve; Redis alone does not know a reference',
  {},
)

function rejectReference(target: object): void {
  const { subject } = target as { readonly subject?: unknown }
  if (typeof subject === 'string' && isReference(subject)) throw NO_REFERENCES
}

/**
 * Creates the client of a limiter in this process. It reads the store, because an operator must not mistake a guess
 * for what is in force.
 */
export function gateOperatorClient(
  limiter: RuleLimiter,
  stats: OperatorClient['stats'],
  pages: UsagePages,
): OperatorClient {
  return {
    control: () => limiter.control.read(),
    async setControl(change) {
      await limiter.control.set(change)
      return limiter.control.get()
    },
    overrides: () => limiter.overrides.read(),
    async setOverride(override) {
      rejectReference(override)
      const effect = limiter.overrides.preview(override)
      await limiter.overrides.set(override)
      return effect
    },
    async previewOverride(override) {
      rejectReference(override)
      return limiter.overrides.preview(override)
    },
    async removeOverride(target) {
      rejectReference(target)
      return limiter.overrides.remove(target)
    },
    async decide(action, question) {
      rejectReference(question)
      if ('ask' in question) return (await limiter[action](question.subject, question.ask)).toJSON()
      const facts = { ...question.request, subject: question.subject }
      return (await (action === 'check' ? limiter.request(facts) : limiter.peekRequest(facts))).toJSON()
    },
    inspect: (subject, options) => limiter.inspect(subject, options),
    rejected: () => Promise.reject(NO_REFERENCES),
    stats,
    async usage(subject, ask) {
      rejectReference({ subject })
      const isNamed = Object.keys(ask).length > 0
      return limiter.usage(subject, isNamed ? (ask as unknown as CheckOptions<string, string>) : undefined)
    },
    usagePage: pages.read,
    async credit(subject, units, options) {
      rejectReference({ subject })
      // The limiter validates them and names the bad one.
      const given = options as unknown as CheckOptions<string, string> & CreditOptions
      return limiter.credit(subject, units, given)
    },
    async reset(subject, ask) {
      rejectReference({ subject })
      await limiter.reset(subject, ask)
    },
    async close() {
      await pages.close()
      await limiter.close()
    },
  }
}
