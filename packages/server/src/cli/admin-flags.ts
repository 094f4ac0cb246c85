/** The flags of `headgate serve` for the port of decisions, operators, probes and metrics, and who may call it. */
import { isIPv4 } from 'node:net'
import type { Command } from 'commander'
import { type Environment, mistakeAt } from 'headgate/internal'
import { ROLES, type Role } from '../admin/endpoint.js'
import type { Token } from '../admin/tokens.js'
import type { AdminOptions } from '../service/service.js'
import { parsePort } from './number-options.js'
import { checkedSecret, secretFromFile } from './read-secrets.js'
import { UsageError } from './usage-error.js'

/** The flags as typed. */
export interface AdminFlags {
  readonly adminHost: string
  readonly adminPort: number
  readonly adminToken?: readonly string[]
  readonly adminName?: readonly string[]
  readonly metricsPublic?: boolean
  readonly showSubjects?: boolean
}

const FLAG = '--admin-token'
const TOKEN = /^([A-Za-z0-9_.-]{1,64}):(\w+):(file|env):(.+)$/
const SHAPE = `name:role:file:path or name:role:env:VARIABLE, the role one of ${ROLES.join(', ')}`
/** A token must fit in a header, and in a shell without quotes. */
const SENDABLE = /^[\x21-\x7e]+$/
const NAME = /^[a-z0-9]([a-z0-9.-]{0,253}[a-z0-9])?$/

export function addAdminFlags(command: Command): void {
  command
    .option(
      '--admin-host <address>',
      'address of the admin port; any but loopback needs a token',
      '127.0.0.1',
    )
    .option(
      '--admin-port <number>',
      'port for decisions, operators and probes; 0 chooses a free one',
      parsePort,
      8082,
    )
    .option(
      '--admin-token <name:role:source...>',
      'who may call the admin port: role check, read or administer; secret from file:path or env:VARIABLE',
    )
    .option('--admin-name <name...>', 'host names under which the admin port may be called, beside addresses')
    .option('--metrics-public', 'metrics need no token')
    .option('--show-subjects', 'show operators full names instead of masked ones')
}

/** Reads the flags, and the secrets they name. */
export async function adminOptions(flags: AdminFlags, environment: Environment): Promise<AdminOptions> {
  const tokens = await readTokens()
  const { adminHost: host, adminPort: port, metricsPublic = false, showSubjects = false } = flags
  if (tokens.length === 0) rejectOpen(host)
  const names = (flags.adminName ?? []).map(parseName)
  return { host, port, tokens, readTokens, names, metricsPublic, showSubjects }

  async function readTokens(): Promise<readonly Token[]> {
    const read: Token[] = []
    for (const text of flags.adminToken ?? []) read.push(await readToken(text, environment))
    rejectDoubles(read)
    return read
  }
}

async function readToken(text: string, environment: Environment): Promise<Token> {
  const [, name = '', role = '', kind, place = ''] = TOKEN.exec(text) ?? []
  // The value is not repeated: it may be a secret that was typed by mistake.
  if (name === '') throw new UsageError({ field: FLAG, expected: SHAPE, got: 'something else' })
  if (!ROLES.includes(role as Role)) {
    throw new UsageError(mistakeAt(`${FLAG} ${name}`, `a role of ${ROLES.join(', ')}`, role))
  }
  const source = `${FLAG} ${name}`
  const secret =
    kind === 'file'
      ? await secretFromFile(source, place)
      : checkedSecret(`${source}, ${place}`, environment[place] ?? '')
  if (!SENDABLE.test(secret)) {
    throw new UsageError({ field: source, expected: 'a secret of visible ASCII characters', got: 'others' })
  }
  return { name, role: role as Role, secret }
}

function rejectDoubles(tokens: readonly Token[]): void {
  for (const [index, { name, secret }] of tokens.entries()) {
    const earlier = tokens.slice(0, index)
    if (earlier.some(other => other.name === name)) {
      throw new UsageError({ field: `${FLAG} ${name}`, expected: 'each name once', got: 'it twice' })
    }
    const twin = earlier.find(other => other.secret === secret)
    if (twin !== undefined) {
      throw new UsageError({
        field: `${FLAG} ${name}`,
        expected: 'a secret of its own',
        got: `that of ${twin.name}`,
      })
    }
  }
}

/** Without tokens, everybody who reaches the port may change every limit. */
function rejectOpen(host: string): void {
  if (host === '::1' || (isIPv4(host) && host.startsWith('127.'))) return
  throw new UsageError(
    mistakeAt('--admin-host', `a loopback address (127.0.0.1, ::1), or ${FLAG} to say who may call`, host),
  )
}

function parseName(text: string): string {
  const name = text.toLowerCase()
  if (NAME.test(name)) return name
  throw new UsageError(mistakeAt('--admin-name', 'a host name without port', text))
}
