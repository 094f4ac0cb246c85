/** Ways to spell a path that some server takes for the plain one, and ways to make it look like another. */
import { ROUTES } from './server-setups.ts'

const TURNS: Record<string, (path: string) => string> = {
  plain: path => path,
  'slash at the end': path => `${path}/`,
  'slashes at the end': path => `${path}//`,
  capitals: path => path.toUpperCase(),
  'one capital': path => path.replace(/[a-z]/, letter => letter.toUpperCase()),
  'Kelvin sign': path => path.replace('k', '%E2%84%AA').replace('s', '%C5%BF'),
  'encoded letter': path => path.replace(/[a-z]/, hex),
  'encoded, small': path => path.replace(/[k-z]/, letter => hex(letter).toLowerCase()),
  'all encoded': path => path.replace(/[a-z]/g, hex),
  'encoded slash at the end': path => `${path}%2f`,
  'encoded slash inside': path => path.replace(/(.)\//, '$1%2F'),
  'encoded slash in front': path => `/%2f${path.slice(1)}`,
  'dot in front': path => `/.${path}`,
  'dot at the end': path => `${path}/.`,
  'dots through a generous rule': path => `/public/..${path}`,
  'encoded dots through a generous rule': path => `/public/%2e%2E${path}`,
  'encoded slash through a generous rule': path => `/public/..%2f${path.slice(1)}`,
  'dots behind a search': path => `/search/..${path}`,
  'encoded slash behind a search': path => `/search/..%2f${path.slice(1)}`,
  'dots into a generous rule': path => `${path}/../../public/x`,
  'encoded dots into health': path => `${path}/..%2f..%2fhealth`,
  'doubled slash in front': path => `/${path}`,
  'doubled slash inside': path => path.replace(/(.)\//, '$1//'),
  'host in front': path => `//x${path}`,
  'host and backslash in front': path => `/\\x${path}`,
  backslashes: path => `/${path.slice(1).replaceAll('/', '\\')}`,
  'encoded backslash': path => path.replace(/(.)\//, '$1%5c'),
  'path parameter': path => `${path};a=b`,
  'path parameter with a slash': path => `${path};a/b`,
  'path parameter inside': path => path.replace(/(.)\//, '$1;v=1/'),
  'path parameter, then generous': path => `${path};/../public/x`,
  query: path => `${path}?a=/../public/x`,
  'empty query': path => `${path}?`,
  'encoded query': path => `${path}%3fa`,
  fragment: path => `${path}#f`,
  'fragment with dots': path => `${path}#/../public/x`,
  'generous, then fragment': path => `/public/#/..${path}`,
  'fragment, then query': path => `${path}#a?b`,
  'absolute form': path => `http://x${path}`,
  'absolute form with dots': path => `http://x/public/..${path}`,
  'absolute form with a third slash': path => `http:///public${path}`,
  'a star for the slash': path => `*${path.slice(1)}`,
  'path info': path => `${path}/x`,
  'path info like a script': path => `${path}/x.php`,
  'path info like another path': path => `${path}/public/health`,
  'encoded path info': path => `${path}%2fx`,
  'path info behind a space': path => `${path}%20/x`,
  'NUL at the end': path => `${path}%00`,
  'NUL and more': path => `${path}%00.x`,
  'encoded space at the end': path => `${path}%20`,
  'tab at the end': path => `${path}%09`,
  'line end at the end': path => `${path}%0a`,
  'line ends at the end': path => `${path}%0d%0A`,
  'wide space at the end': path => `${path}%E3%80%80`,
  'full stop at the end': path => `${path}.`,
  'full stops and spaces at the end': path => `${path}..%20.`,
  'name of a stream': path => `${path}::$DATA`,
  'encoded name of a stream': path => `${path}%3a%3a%24data`,
  'name of a folder’s stream': path => path.replace(/(.)\//, '$1:$I30:$INDEX_ALLOCATION/'),
  'full stop inside': path => path.replace(/(.)\//, '$1./'),
  'blank dots through a generous rule': path => `/public/..%20${path}`,
  'encoded slash, encoded again, at the end': path => `${path}%252f`,
  'half an escape encoded': path => path.replace(/g/, '%6%37'),
  'encoded percent': path => path.replace(/[a-z]/, letter => hex(letter).replace('%', '%25')),
  'empty parameter': path => path.replace(/42|shoes/, ''),
  'capitals behind dots': path => `/public/..${path.toUpperCase()}/`,
  'everything at once': path => `//x/./${path.slice(1).replace(/[a-z]/, hex)}/;a#f`,
}

/** Ways to make a script look like a file that the policy file skips. Below `/public/*` they are such files. */
const LIKE_SKIPPED: typeof TURNS = {
  'path info like a skipped file': path => `${path}/x.css`,
  'NUL, then like a skipped file': path => `${path}%00.css`,
  'space, then like a skipped file': path => `${path}%20/x.css`,
}

export interface Spelling {
  readonly turn: string
  /** The route, as its server names it. */
  readonly of: string
  readonly target: string
}

function spellingsOf(routes: Readonly<Record<string, string>>, turns: typeof TURNS): readonly Spelling[] {
  return Object.entries(routes).flatMap(([route, path]) =>
    Object.entries(turns).map(([turn, spell]) => ({ turn, of: route, target: spell(path) })),
  )
}

/** Every variation of the routes that all servers in this process have. */
export const SPELLINGS = spellingsOf(ROUTES, TURNS)

/** Returns every variation of the paths of scripts. */
export function spellingsOfScripts(paths: readonly string[]): readonly Spelling[] {
  return spellingsOf(Object.fromEntries(paths.map(path => [path, path])), { ...TURNS, ...LIKE_SKIPPED })
}

function hex(letter: string): string {
  return `%${letter.charCodeAt(0).toString(16).toUpperCase()}`
}
