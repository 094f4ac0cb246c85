/** Converts between the messages of Envoy's protocol and our own types. */
import { isUtf8 } from 'node:buffer'
import { AskError, type Descriptor, type RateLimitAsk, UNITS, type Unit } from '../descriptor.js'
import type { DescriptorStatus, RateLimitReply } from '../rate-limit-service.js'
import { loadMethod } from './load-proto.js'

/** As in `proto/ratelimit.proto`; unset fields are missing. */
interface RequestMessage {
  readonly domain?: Buffer
  readonly descriptors?: readonly DescriptorMessage[]
  readonly hitsAddend?: number
}

interface DescriptorMessage {
  readonly entries?: readonly { readonly key?: Buffer; readonly value?: Buffer }[]
  readonly limit?: { readonly requestsPerUnit?: number; readonly unit?: number }
  readonly hitsAddend?: { readonly value?: number }
  readonly isNegativeHits?: boolean
}

export const METHOD = loadMethod<RequestMessage, object>(
  'ratelimit.proto',
  'envoy.service.ratelimit.v3.RateLimitService',
  'ShouldRateLimit',
)

const CODE = { ok: 1, over: 2 }

/** Throws an `AskError` for bytes that are not such a message. */
export function decodeAsk(bytes: Buffer): RateLimitAsk {
  const { domain, descriptors = [], hitsAddend = 0 } = decodeMessage(bytes)
  return { domain: textOf(domain), descriptors: descriptors.map(descriptorOf), hitsAddend }
}

export function encodeReply(reply: RateLimitReply): Buffer {
  const { isOver, statuses, headers, metadata } = reply
  return METHOD.responseSerialize({
    overallCode: isOver ? CODE.over : CODE.ok,
    statuses: statuses.map(statusMessage),
    responseHeadersToAdd: headers.map(([key, value]) => ({ key, value })),
    ...(metadata !== null && { dynamicMetadata: structOf(metadata) }),
  })
}

function decodeMessage(bytes: Buffer): RequestMessage {
  try {
    return METHOD.requestDeserialize(bytes)
  } catch {
    throw new AskError({ field: 'message', expected: 'a RateLimitRequest', got: 'bytes that are none' })
  }
}

function descriptorOf({
  entries = [],
  limit,
  hitsAddend,
  isNegativeHits = false,
}: DescriptorMessage): Descriptor {
  return {
    entries: entries.map(({ key, value }) => ({ key: textOf(key), value: textOf(value) })),
    limit:
      limit === undefined ? null : { requestsPerUnit: limit.requestsPerUnit ?? 0, unit: unitOf(limit.unit) },
    hitsAddend: hitsAddend === undefined ? null : (hitsAddend.value ?? 0),
    isNegativeHits,
  }
}

/** Rejects bytes that are not UTF-8: decoded, they would become another text, perhaps another caller's. */
function textOf(bytes: Buffer | undefined): string {
  if (bytes === undefined) return ''
  if (!isUtf8(bytes))
    throw new AskError({ field: 'descriptors', expected: 'texts in UTF-8', got: 'one that is not' })
  return bytes.toString('utf8')
}

function unitOf(number = 0): Unit {
  const unit = UNITS[number - 1]
  if (unit !== undefined) return unit
  throw new AskError({
    field: 'limit.unit',
    expected: `a number from 1 to ${UNITS.length}`,
    got: String(number),
  })
}

function statusMessage({ isOver, current, remaining, untilResetMs }: DescriptorStatus): object {
  return {
    code: isOver ? CODE.over : CODE.ok,
    limitRemaining: remaining,
    ...(current !== null && {
      currentLimit: {
        requestsPerUnit: current.requestsPerUnit,
        unit: current.unit === null ? 0 : UNITS.indexOf(current.unit) + 1,
        name: current.name,
      },
    }),
    ...(untilResetMs !== null && { durationUntilReset: durationOf(untilResetMs) }),
  }
}

function durationOf(ms: number): object {
  return { seconds: Math.floor(ms / 1000), nanos: Math.floor((ms % 1000) * 1e6) }
}

/** A `google.protobuf.Struct`. */
function structOf(fields: Readonly<Record<string, unknown>>): object {
  return {
    fields: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, anyValueOf(value)])),
  }
}

function anyValueOf(value: unknown): object {
  if (typeof value === 'number') return { numberValue: value }
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (Array.isArray(value)) return { listValue: { values: value.map(anyValueOf) } }
  if (typeof value === 'object' && value !== null)
    return { structValue: structOf(value as Record<string, unknown>) }
  return { nullValue: 0 }
}
