/**
 * Finds who is asking: every source is tried in its order, and whoever they find are the subjects of the request, from
 * the most specific to the least. A request of whom no source knows anything is charged to a budget that all such
 * requests share, so that leaving out what identifies a caller frees nobody.
 */
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import { letFail } from '../errors/let-fail.js'
import type { HttpRequest } from './http-request.js'
import { type Finding, isPromise, type SubjectSource } from './source.js'
import { createSubjectNamer, type SubjectInput } from './subject.js'

/** The subjects that ask, from the most specific to the least, and the tier one of the sources or the look-up knows. */
export interface Identity {
  readonly subjects: readonly SubjectInput[]
  readonly tier: string | undefined
}

export interface Identify {
  /** Finds out who is asking; at once where no source has to wait. Fails as its sources do. */
  (request: HttpRequest): Identity | Promise<Identity>
  /** Settles when every source has what it needs, such as a package; rejects when one cannot have it. */
  ready(): Promise<void>
}

export interface IdentifyOptions {
  /** Tried in this order. */
  readonly sources: readonly SubjectSource[]
  /** The tier of a subject, where no source has told one; asked for each in its order until one has a tier. */
  readonly tierOf?: (
    subject: SubjectInput,
    request: HttpRequest,
  ) => string | null | undefined | Promise<string | null | undefined>
}

/** The subject of requests whose caller is not known at all. */
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
  // Only to see whether what a source returns is a subject; what it is called is for the limiter to say.
  const refuseRubbish = createSubjectNamer({ onWarning: () => {} })

  /** One that throws must not leave another's failure to nobody. */
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

/** Says what came by its kind alone: it may be a secret. */
function rubbish(field: string, expected: string, got: unknown): Error {
  return new HeadgateError(
    'ERR_HEADGATE_INVALID_SUBJECT',
    `${field}: expected ${expected}; got a value of type ${typeof got}`,
  )
}
