import { limit } from './file/limit.js'
import { policyFile } from './file/policy-file.js'
import type { JsonSchema } from './shape/shape.js'

/**
 * Returns the JSON Schema of a policy file, for editors. It knows every field and number, but not which names are
 * defined.
 */
export function configSchema(): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Headgate policy file',
    ...(withReferences(policyFile.schema) as JsonSchema),
    definitions: { limit: limit.schema },
  }
}

/** Limits appear in many places, so they are defined once and referenced. */
function withReferences(schema: unknown): unknown {
  if (schema === limit.schema) return { $ref: '#/definitions/limit' }
  if (Array.isArray(schema)) return schema.map(withReferences)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withReferences(value)]))
}
