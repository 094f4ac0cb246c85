/**
 * Finds who is asking. Every source is tried in order, and the subjects they find are those of the request,
 * from the most specific to the least. A request that no source can identify is its address's, and those without an
 * address share one budget, so that omitting credentials gains nothing.
 */
import { invalidOption } from '../errors/headgate-error.js'
import type { HttpRequest } from './http-request.js'
import { type AddressSource, type Identified, ip, isPromise, type SubjectSource } from './sources.js'
import { namesNobody, type SubjectInput } from './subject.js'

/**
 * The subjects of a request, from the most specific to the least, and the tier if a source or the look-up knows
 * it.
 */
export interface Identity {
  readonly subjects: readonly SubjectInput[]
  readonly tier: string | undefined
  /** The subjects that anybody can mint, if there are any; they are charged to the address, too. */
  readonly perAddress?: PerAddress
  /** The first error of a source that failed, and so named nobody. */
  readonly failure?: { readonly error: unknown }
  /** What a source returned instead of a subject that names somebody. */
  readonly nameless?: string
}

/** Subjects that anybody can mint, and the address that is charged with them. */
export interface PerAddress {
  readonly address: SubjectInput
  /** `times`: how many times the limits of one all such subjects of the address have together. */
  readonly minted: readonly { readonly subject: SubjectInput; readonly times: number }[]
}

/** Bounds a wait: rejects when the time for it is up. */
export type Within = <T>(work: Promise<T>) => Promise<T>

export interface Identify {
  /**
   * Identifies the caller: synchronously if no source has to wait. A source that throws, rejects or exceeds `within`
   * names nobody, and the next ones do.
   */
  (request: HttpRequest, within?: Within): Identity | Promise<Identity>
  /** Settles when every source has what it needs, such as a package; rejects if one cannot get it. */
  ready(): Promise<void>
}

export interface IdentifyOptions {
  /** Tried in this order. */
  readonly sources: readonly SubjectSource[]
  /**
   * Looks up the tier of a subject if no source named one. Called for each subject in order until one has a
   * tier.
   */
  readonly tierOf?: (
    subject: SubjectInput,
    request: HttpRequest,
  ) => string | null | undefined | Promise<string | null | undefined>
  /**
   * Finds the address of callers whom no source names, and to which made-up subjects are charged: what `ip()` returns.
   * Default: the `ip()` among the sources, or the address of the connection.
   */
  readonly address?: AddressSource
}

const untilDone: Within = work => work

export function createIdentify(options: IdentifyOptions): Identify {
  const { sources, tierOf } = options ?? {}
  if (
    !Array.isArray(sources) ||
    sources.length === 0 ||
    sources.some(one => typeof one?.find !== 'function')
  ) {
    throw invalidOption('sources', 'a list of at least one source', sources)
  }
  if (tierOf !== undefined && typeof tierOf !== 'function') {
    throw invalidOption('tierOf', 'a function of a subject', tierOf)
  }
  const address = options.address ?? sources.find(isAddress) ?? ip()

  /** Asks one source. One that fails names nobody. */
  function ask(source: SubjectSource, request: HttpRequest, within: Within, fault: Fault): Found {
    try {
      const finding = source.find(request)
      if (!isPromise(finding)) return finding
      return within(Promise.resolve(finding)).catch(error => fault.note(error))
    } catch (error) {
      return fault.note(error)
    }
  }

  function toIdentity(
    findings: readonly (Identified | null)[],
    request: HttpRequest,
    fault: Fault,
  ): Identity {
    const subjects: SubjectInput[] = []
    const minted: { subject: SubjectInput; times: number }[] = []
    let tier: string | undefined
    for (const finding of findings) {
      if (finding === null || finding === undefined) continue
      const { subject: found, tier: itsTier, perAddress } = finding
      for (const subject of (Array.isArray(found) ? found : [found]) as SubjectInput[]) {
        const why = namesNobody(subject)
        if (why !== null) fault.nameless ??= why
        else {
          subjects.push(subject)
          if (perAddress !== undefined) minted.push({ subject, times: perAddress })
        }
      }
      tier ??= readTier(itsTier, fault)
    }
    if (subjects.length === 0) subjects.push(address.find(request).subject)
    return {
      subjects,
      tier,
      ...(minted.length > 0 && { perAddress: { address: address.find(request).subject, minted } }),
    }
  }

  const identify = (request: HttpRequest, within = untilDone): Identity | Promise<Identity> => {
    const fault = new Fault()
    const conclude = (identity: Identity) => withFault(identity, fault)
    const toKnown = (findings: readonly (Identified | null)[]) => {
      const identity = toIdentity(findings, request, fault)
      if (tierOf === undefined || identity.tier !== undefined) return conclude(identity)
      return lookUpTier(identity, request, { tierOf, within, fault }).then(conclude)
    }
    const findings = sources.map(source => ask(source, request, within, fault))
    return findings.some(isPromise)
      ? Promise.all(findings).then(toKnown)
      : toKnown(findings as (Identified | null)[])
  }
  return Object.assign(identify, {
    async ready() {
      await Promise.all(sources.map(source => source.ready?.()))
    },
  })
}

type Found = ReturnType<SubjectSource['find']>

/** The faults of the sources of one request. */
class Fault {
  failure: Identity['failure']
  nameless: string | undefined

  note(error: unknown): null {
    this.failure ??= { error }
    return null
  }
}

function withFault(identity: Identity, { failure, nameless }: Fault): Identity {
  if (failure === undefined && nameless === undefined) return identity
  return { ...identity, ...(failure && { failure }), ...(nameless !== undefined && { nameless }) }
}

function isAddress(source: SubjectSource): source is AddressSource {
  return 'isAddress' in source && source.isAddress === true
}

async function lookUpTier(
  identity: Identity,
  request: HttpRequest,
  { tierOf, within, fault }: { tierOf: NonNullable<IdentifyOptions['tierOf']>; within: Within; fault: Fault },
): Promise<Identity> {
  try {
    for (const subject of identity.subjects) {
      const tier = readTier(await within(Promise.resolve(tierOf(subject, request))), fault)
      if (tier !== undefined) return { ...identity, tier }
    }
  } catch (error) {
    fault.note(error)
  }
  return identity
}

function readTier(tier: unknown, fault: Fault): string | undefined {
  if (tier === undefined || tier === null) return undefined
  if (typeof tier === 'string' && tier !== '') return tier
  fault.nameless ??= `a tier of type ${typeof tier}`
  return undefined
}
