/** Parses a file of envoyproxy/ratelimit, with Headgate's additions: `algorithm`, `window`, `burst`. */
import { isHeadgateError } from 'headgate'
import { shownName } from 'headgate/internal'
import type { DescriptorNode, KeyNodes, Wildcard } from './descriptor-tree.js'
import {
  DescriptorConfigError,
  type Fields,
  fieldsOf,
  flagAt,
  scalarAt,
  textAt,
  unexpected,
} from './fields.js'
import { parseRateLimit } from './parse-rate-limit.js'

const FILE_FIELDS = ['domain', 'descriptors']
const DESCRIPTOR_FIELDS = [
  'key',
  'value',
  'rate_limit',
  'shadow_mode',
  'quota_mode',
  'detailed_metric',
  'value_to_metric',
  'share_threshold',
  'metadata',
  'descriptors',
]
/** Deeper files are a mistake, and every request would walk them. */
const MAX_DEPTH = 64

export function parseDescriptorFile(value: unknown): { domain: string; root: DescriptorNode } {
  const fields = fieldsOf(value, 'file', FILE_FIELDS)
  const domain = textAt(fields.domain, 'domain')
  return { domain, root: { limit: null, below: parseList(fields.descriptors, 'descriptors', 1) } }
}

interface Found {
  readonly byValue: Map<string, DescriptorNode>
  readonly wildcards: Wildcard[]
  anyValue: DescriptorNode | null
}

function parseList(value: unknown, at: string, depth: number): ReadonlyMap<string, KeyNodes> {
  const byKey = new Map<string, Found>()
  if (value === undefined || value === null) return byKey
  if (!Array.isArray(value)) throw unexpected(at, 'a list of descriptors', value)
  if (depth > MAX_DEPTH)
    throw new DescriptorConfigError({ field: at, expected: `at most ${MAX_DEPTH} levels`, got: 'more' })
  for (const [index, one] of value.entries()) addDescriptor(byKey, one, `${at}[${index}]`, depth)
  return byKey
}

function addDescriptor(byKey: Map<string, Found>, one: unknown, at: string, depth: number): void {
  const fields = fieldsOf(one, at, DESCRIPTOR_FIELDS)
  const key = textAt(fields.key, `${at}.key`)
  const value =
    fields.value === undefined || fields.value === null ? '' : scalarAt(fields.value, `${at}.value`)
  const found: Found = byKey.get(key) ?? { byValue: new Map(), wildcards: [], anyValue: null }
  byKey.set(key, found)
  const isTaken =
    value === ''
      ? found.anyValue !== null
      : found.byValue.has(value) || found.wildcards.some(w => w.pattern === value)
  if (isTaken) {
    const what = `key "${shownName(key)}"${value === '' ? '' : ' with this value'}`
    throw new DescriptorConfigError({ field: at, expected: 'each key and value once', got: `${what} again` })
  }
  const isShared = flagAt(fields.share_threshold, `${at}.share_threshold`)
  if (isShared && !value.includes('*')) {
    throw new DescriptorConfigError({
      field: `${at}.share_threshold`,
      expected: 'beside a value with * only',
    })
  }
  const node = {
    limit: parseLimit(fields, at),
    below: parseList(fields.descriptors, `${at}.descriptors`, depth + 1),
  }
  if (value === '') found.anyValue = node
  else if (value.includes('*')) found.wildcards.push({ pattern: value, isShared, node })
  else found.byValue.set(value, node)
}

function parseLimit(fields: Fields, at: string): DescriptorNode['limit'] {
  const isShadow = flagAt(fields.shadow_mode, `${at}.shadow_mode`)
  const isQuota = flagAt(fields.quota_mode, `${at}.quota_mode`)
  flagAt(fields.detailed_metric, `${at}.detailed_metric`)
  flagAt(fields.value_to_metric, `${at}.value_to_metric`)
  const { metadata = null, rate_limit: rateLimit } = fields
  if (metadata !== null) fieldsOf(metadata, `${at}.metadata`, null)
  if (rateLimit === undefined || rateLimit === null) return null
  const here = `${at}.rate_limit`
  try {
    return {
      ...parseRateLimit(fieldsOf(rateLimit, here, null), here),
      mode: isShadow ? 'shadow' : isQuota ? 'quota' : 'enforce',
      metadata: metadata as Fields | null,
    }
  } catch (error) {
    if (error instanceof DescriptorConfigError || !isHeadgateError(error)) throw error
    const { field, expected = error.message, got, suggestion } = error
    const place = field === undefined ? here : `${here}.${field}`
    throw new DescriptorConfigError({ field: place, expected, got, suggestion })
  }
}
