/** Finds the upstream of a request: by its host, then by the longest path prefix. */
import type { Config } from 'headgate'
import type { UpstreamConfig } from 'headgate/internal'

/** Returns the upstream for a `Host` and a path with its query; null if there is none. */
export type FindRoute<Target> = (host: string, url: string) => Target | null

interface Compiled<Target> {
  readonly matchesHost: (name: string) => boolean
  /** 2 for a name, 1 for `*.`, 0 for any; longer suffixes come first. */
  readonly weight: number
  readonly path: string
  readonly target: Target
}

const ANY_WEIGHT = 0
const BELOW_WEIGHT = 1
const NAME_WEIGHT = 1_000
/** Dots and backslashes, which servers resolve before they look at a path. */
const HAS_DOTS = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?#]|$)|\\/i

export function createFindRoute<Target>(
  { routes, upstream }: Pick<Config, 'routes' | 'upstream'>,
  open: (config: UpstreamConfig) => Target,
): FindRoute<Target> {
  const rest = upstream === null ? null : open(upstream)
  const compiled = routes
    .flatMap(({ hosts, path, upstream: config }): Compiled<Target>[] => {
      const target = open(config)
      return (hosts ?? [null]).map(host => ({ ...compileHost(host), path: path ?? '', target }))
    })
    .sort((one, other) => other.weight - one.weight || other.path.length - one.path.length)
  if (compiled.length === 0) return () => rest
  return function findRoute(host, url) {
    const name = host.replace(/:\d+$/, '').toLowerCase()
    const path = pathOf(url)
    const found = compiled.find(route => route.matchesHost(name) && isBelow(path, route.path))
    return found?.target ?? rest
  }
}

function compileHost(host: string | null): Pick<Compiled<unknown>, 'matchesHost' | 'weight'> {
  if (host === null) return { matchesHost: () => true, weight: ANY_WEIGHT }
  if (!host.startsWith('*.')) return { matchesHost: name => name === host, weight: NAME_WEIGHT }
  const end = host.slice(1)
  return { matchesHost: name => name.endsWith(end) && name !== end, weight: BELOW_WEIGHT + end.length }
}

/** Drops the query and resolves dots, as the upstream may, so that `/static/../api` is no way to `/static`. */
function pathOf(url: string): string {
  if (HAS_DOTS.test(url)) return new URL(`http://x${url}`).pathname
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

function isBelow(path: string, start: string): boolean {
  return (
    path.startsWith(start) && (path.length === start.length || path[start.length] === '/' || start === '')
  )
}
