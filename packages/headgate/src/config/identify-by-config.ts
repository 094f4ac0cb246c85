import { readFileSync } from 'node:fs'
import { invalidOption } from '../errors/headgate-error.js'
import type { Config } from '../policy/config.js'
import type { Identify, IdentifyOptions } from '../subject/identify.js'
import { identifyBySources } from '../subject/identify-by-sources.js'
import { jwt } from '../subject/jwt.js'
import type { JwtSourceConfig } from '../subject/source-config.js'
import type { SubjectSource } from '../subject/sources.js'

/**
 * Creates the identification that a policy file describes. Without an `identify` section: the API keys listed in
 * `subjects`, then the client's address. Reads the files it names. If it verifies tokens, await its `ready()`,
 * because `jose` is loaded in the background.
 */
export function identifyByConfig(config: Config, options: Pick<IdentifyOptions, 'tierOf'> = {}): Identify {
  return identifyBySources(config, jwtSource, options)
}

function jwtSource({ source: _, jwks, secretFile = '', ...options }: JwtSourceConfig): SubjectSource {
  return jwks === undefined
    ? jwt({ ...options, secret: readText('secretFile', secretFile).trim() })
    : jwt({ ...options, jwks: readKeySet(readText('jwks', jwks)) })
}

function readText(field: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const { code = 'an error' } = cause as { code?: string }
    throw invalidOption(`identify jwt ${field}`, 'a file that can be read', code)
  }
}

function readKeySet(text: string): { keys: [] } {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidOption('identify jwt jwks', 'a file of JSON', 'something else')
  }
}
