/** `POST /json`: the same question and answer as over gRPC, in protocol buffers' JSON. */

import { bad, type Fields, objectOf } from '../admin/body-fields.js'
import { checks, type Endpoint, RequestError } from '../admin/endpoint.js'
import { readJson } from '../admin/read-body.js'
import { type HttpAnswer, jsonAnswer, problemAnswer, type Rejection } from '../http/problem.js'
import { AskError, type Descriptor, type RateLimitAsk, UNITS, type Unit } from './descriptor.js'
import {
  type DescriptorStatus,
  type RateLimitReply,
  type RateLimitService,
  UnavailableError,
} from './rate-limit-service.js'

const TOO_MANY_REQUESTS = 429
const NOBODY_CAN_SAY: Rejection = {
  status: 503,
  detail: 'The limits cannot be looked at.',
  headers: [['Retry-After', '1']],
}

export function jsonEndpoint(service: RateLimitService): Endpoint {
  async function decide(body: unknown): Promise<HttpAnswer> {
    try {
      const reply = await service(askOf(body))
      return jsonAnswer(reply.isOver ? TOO_MANY_REQUESTS : 200, replyJson(reply))
    } catch (error) {
      if (error instanceof AskError) throw new RequestError(400, error.mistake)
      if (error instanceof UnavailableError) return problemAnswer(NOBODY_CAN_SAY)
      throw error
    }
  }
  return { path: '/json', methods: { POST: checks(async req => decide(await readJson(req))) } }
}

function askOf(value: unknown): RateLimitAsk {
  const body = objectOf(value, 'body')
  return {
    domain: textAt(body.domain, 'domain'),
    descriptors: listAt(body.descriptors, 'descriptors').map((one, index) =>
      descriptorOf(objectOf(one, `descriptors[${index}]`), `descriptors[${index}]`),
    ),
    hitsAddend: numberAt(either(body, 'hitsAddend', 'hits_addend'), 'hitsAddend') ?? 0,
  }
}

function descriptorOf(fields: Fields, at: string): Descriptor {
  const { limit = null } = fields
  return {
    entries: listAt(fields.entries, `${at}.entries`).map((one, index) => {
      const here = `${at}.entries[${index}]`
      const { key, value } = objectOf(one, here)
      return { key: textAt(key, `${here}.key`), value: textAt(value, `${here}.value`) }
    }),
    limit: limit === null ? null : limitOf(objectOf(limit, `${at}.limit`), `${at}.limit`),
    hitsAddend: numberAt(either(fields, 'hitsAddend', 'hits_addend'), `${at}.hitsAddend`),
    isNegativeHits: either(fields, 'isNegativeHits', 'is_negative_hits') === true,
  }
}

function limitOf(fields: Fields, at: string): NonNullable<Descriptor['limit']> {
  const requestsPerUnit =
    numberAt(either(fields, 'requestsPerUnit', 'requests_per_unit'), `${at}.requestsPerUnit`) ?? 0
  return { requestsPerUnit, unit: unitOf(fields.unit, `${at}.unit`) }
}

/** By its name or its number. */
function unitOf(value: unknown, at: string): Unit {
  const unit = typeof value === 'number' ? UNITS[value - 1] : UNITS.find(one => one.toUpperCase() === value)
  if (unit !== undefined) return unit
  throw bad(at, `one of ${UNITS.map(one => one.toUpperCase()).join(', ')}`, value)
}

/** Both spellings are valid protocol buffers' JSON. */
function either(fields: Fields, camel: string, snake: string): unknown {
  return fields[camel] ?? fields[snake]
}

/** A missing field is empty. */
function textAt(value: unknown, at: string): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  throw bad(at, 'a string', value)
}

function listAt(value: unknown, at: string): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  throw bad(at, 'a list', value)
}

/** 64-bit numbers are strings in this JSON. */
function numberAt(value: unknown, at: string): number | null {
  if (value === undefined || value === null) return null
  const number = typeof value === 'string' && /^\d{1,20}$/.test(value) ? Number(value) : value
  if (typeof number === 'number') return number
  throw bad(at, 'a whole number', value)
}

function replyJson({ isOver, statuses, headers, metadata }: RateLimitReply): object {
  return {
    overallCode: codeName(isOver),
    statuses: statuses.map(statusJson),
    ...(headers.length > 0 && { responseHeadersToAdd: headers.map(([key, value]) => ({ key, value })) }),
    ...(metadata !== null && { dynamicMetadata: metadata }),
  }
}

function statusJson({ isOver, current, remaining, untilResetMs }: DescriptorStatus): object {
  return {
    code: codeName(isOver),
    ...(current !== null && {
      currentLimit: {
        requestsPerUnit: current.requestsPerUnit,
        unit: current.unit?.toUpperCase() ?? 'UNKNOWN',
        ...(current.name !== '' && { name: current.name }),
      },
    }),
    ...(remaining > 0 && { limitRemaining: remaining }),
    ...(untilResetMs !== null && { durationUntilReset: `${untilResetMs / 1000}s` }),
  }
}

function codeName(isOver: boolean): string {
  return isOver ? 'OVER_LIMIT' : 'OK'
}
