import { HeadgateError } from 'headgate'

/** Where Redis is, and its topology. */
export interface RedisAddress {
  readonly topology: 'single' | 'cluster' | 'sentinel'
  readonly tls: boolean
  /** The server, some nodes of the cluster, or the sentinels. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  /** The sentinels' name for the primary. */
  readonly primaryName: string | undefined
}

const SHAPE = /^(rediss?)(-cluster|-sentinel)?:\/\/(.+)$/
const HOSTS_AND_PATH = /^([^/?#@]+)(?:\/([^?#]*))?$/
const HOST = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/
const FORMS = 'redis://, rediss://, redis-cluster:// or redis-sentinel://, then [user:password@]host[:port]'

/**
 * Parses a URL: `redis://host:6379/0`, `redis-cluster://host1,host2`, `redis-sentinel://host1,host2/name`, and the
 * same with `rediss` for TLS. Its errors never repeat the URL, which contains a password.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const [, scheme, kind, rest = ''] = SHAPE.exec(url) ?? []
  // A password may contain an unencoded @: the last one ends it.
  const at = rest.lastIndexOf('@')
  const credentials = at === -1 ? undefined : rest.slice(0, at)
  const [, hosts, path = ''] = HOSTS_AND_PATH.exec(rest.slice(at + 1)) ?? []
  if (hosts === undefined) throw invalid(FORMS)
  const topology = kind === '-cluster' ? 'cluster' : kind === '-sentinel' ? 'sentinel' : 'single'
  const nodes = hosts.split(',').map(host => parseHost(host, topology === 'sentinel' ? 26_379 : 6_379))
  if (topology === 'single' && nodes.length > 1) {
    throw invalid('one host; several are a redis-cluster:// or a redis-sentinel://')
  }
  return {
    topology,
    tls: scheme === 'rediss',
    nodes,
    ...parseCredentials(credentials),
    ...parsePath(topology, path),
  }
}

function parseHost(text: string, defaultPort: number): { host: string; port: number } {
  const [, bracketed, plain, port = String(defaultPort)] = HOST.exec(text) ?? []
  const host = bracketed ?? plain
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) {
    throw invalid('hosts as name, name:port or [IPv6]:port, separated by commas')
  }
  return { host, port: Number(port) }
}

function parseCredentials(text: string | undefined): Pick<RedisAddress, 'username' | 'password'> {
  if (text === undefined) return { username: undefined, password: undefined }
  const colon = text.indexOf(':')
  const [username, password] = colon === -1 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)]
  return { username: decode(username) || undefined, password: decode(password) || undefined }
}

function parsePath(
  topology: RedisAddress['topology'],
  path: string,
): Pick<RedisAddress, 'database' | 'primaryName'> {
  if (topology === 'sentinel') {
    const [name = '', database = '0', ...rest] = path.split('/')
    if (name === '' || rest.length > 0)
      throw invalid('redis-sentinel://hosts/<name of the primary>[/database]')
    return { database: parseDatabase(database), primaryName: decode(name) }
  }
  const database = parseDatabase(path === '' ? '0' : path)
  if (topology === 'cluster' && database !== 0)
    throw invalid('no database with redis-cluster://: it has one only')
  return { database, primaryName: undefined }
}

function parseDatabase(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw invalid('a database number after the host, or nothing')
  return Number(text)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('a user, a password and names in which % is written as %25')
  }
}

function invalid(expected: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
    field: 'Redis url',
    expected,
    got: 'something else',
  })
}
