/**
 * Finds who is asking. Every source is tried in order, and the subjects they find are those of the request,
 * from the most specific to the least. Requests that no source can identify share one budget, so that omitting
 * credentials gains nothing.
 */
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import { letFail } from '../errors/let-fail.js'
import type { HttpRequest } from './http-request.js'
import { type Finding, isPromise, type SubjectSource } from './source.js'
import { createSubjectNamer, type SubjectInput } from './subject.js'

/**
 * The subjects of a request, from the most specific to the least, and the tier if a source or the look-up knows
 * it.
 */
export interface Identity {
  readonly subjects: readonly SubjectInput[]
  readonly tier: string | undefined
}

export interface Identify {
  /** Identifies the caller: synchronously if no source has to wait. Rejects if a source does. */
  (request: HttpRequest): Identity | Promise<Identity>
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
}

/** The subject shared by all requests whose caller is unknown. */
const NOBODY: SubjectInput = 'nobody:unknown'

export function createIdentify(options: IdentifyOptions): Identify {
  const { sources, tierOf } = options ?? {}
  if (
    !Array.isArray(sources) ||
    sources.length === 0 ||
    sources.some(one => typeof one?.find !== 'function')
  ) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'sources', 'a list of at least one source', sources)
  }
  if (tierOf !== undefined && typeof tierOf !== 'function') {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'tierOf', 'a function of a subject', tierOf)
  }
  // Used only to check that a source returned a subject; the limiter does the naming.
  const refuseRubbish = createSubjectNamer({ onWarning: () => {} })

  /** If one source throws, the promises of the others must not reject unhandled. */
  function askAll(request: HttpRequest): ReturnType<SubjectSource['find']>[] {
    const findings: ReturnType<SubjectSource['find']>[] = []
    try {
      for (const source of sources) findings.push(source.find(request))
      return findings
    } catch (error) {
      for (const finding of findings) letFail(finding)
      throw error
    }
  }

  function toIdentity(findings: readonly (Finding | null | undefined)[]): Identity {
    const subjects: SubjectInput[] = []
    let tier: string | undefined
    for (const finding of findings) {
      if (finding === null || finding === undefined) continue
      if (typeof finding !== 'object') throw rubbish('source', 'null or { subject, tier }', finding)
      const found = Array.isArray(finding.subject) ? finding.subject : [finding.subject]
      for (const subject of found as SubjectInput[]) {
        refuseRubbish(subject)
        subjects.push(subject)
      }
      tier ??= readTier(finding.tier)
    }
    return { subjects: subjects.length === 0 ? [NOBODY] : subjects, tier }
  }

  function withTier(identity: Identity, request: HttpRequest): Identity | Promise<Identity> {
    if (tierOf === undefined || identity.tier !== undefined) return identity
    return lookUpTier(identity, request, tierOf)
  }

  const identify = (request: HttpRequest): Identity | Promise<Identity> => {
    const findings = askAll(request)
    if (findings.some(isPromise)) {
      return Promise.all(findings).then(found => withTier(toIdentity(found), request))
    }
    return withTier(toIdentity(findings as (Finding | null)[]), request)
  }
  return Object.assign(identify, {
    async ready() {
      await Promise.all(sources.map(source => source.ready?.()))
    },
  })
}

async function lookUpTier(
  { subjects }: Identity,
  request: HttpRequest,
  tierOf: NonNullable<IdentifyOptions['tierOf']>,
): Promise<Identity> {
  for (const subject of subjects) {
    const tier = readTier(await tierOf(subject, request))
    if (tier !== undefined) return { subjects, tier }
  }
  return { subjects, tier: undefined }
}

function readTier(tier: unknown): string | undefined {
  if (tier === undefined || tier === null) return undefined
  if (typeof tier === 'string' && tier !== '') return tier
  throw rubbish('tier', 'the name of a tier, or nothing', tier)
}

/** Shows only the type of the value: the value may be a secret. */
function rubbish(field: string, expected: string, got: unknown): Error {
  return new HeadgateError('ERR_HEADGATE_INVALID_SUBJECT', {
    field,
    expected,
    got: `a value of type ${typeof got}`,
  })
}
