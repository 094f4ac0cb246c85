/** Indexes entries of a policy file by their conditions other than the path. */
import type { MatchConfig } from './config.js'

/** The lists of a match as sets, because a long list must not be scanned for every request. */
export interface Lists {
  readonly methods: ReadonlySet<string> | null
  readonly subjects: ReadonlySet<string> | null
  readonly tiers: ReadonlySet<string> | null
  readonly scopes: ReadonlySet<string> | null
}

/** An entry and its position in the file. Of several that match, the first wins. */
export interface Entry<Value> {
  readonly order: number
  readonly lists: Lists
  readonly value: Value
}

/** The attributes of a request that the lists are compared with. A list matches if it contains one of them. */
export interface RuleQuery {
  readonly method: string | null
  readonly tier: string | null
  readonly scope: string | null
  readonly subjectTypes: readonly string[]
}

/** Most lists have a single word, and many rules use the same one, so those sets are shared. */
const MAX_SHARED = 1_000
const shared = new Map<string, ReadonlySet<string>>()

/** Converts the lists of a match into sets. */
export function listsOf({ methods, subjects, tiers, scopes }: Omit<MatchConfig, 'path'>): Lists {
  if (methods === null && subjects === null && tiers === null && scopes === null) return NO_LISTS
  return { methods: setOf(methods), subjects: setOf(subjects), tiers: setOf(tiers), scopes: setOf(scopes) }
}

const NO_LISTS: Lists = { methods: null, subjects: null, tiers: null, scopes: null }

function setOf(words: readonly string[] | null): ReadonlySet<string> | null {
  if (words === null) return null
  const [only] = words
  if (only === undefined || words.length > 1) return new Set(words)
  let set = shared.get(only)
  if (set === undefined) {
    set = new Set(words)
    if (shared.size < MAX_SHARED) shared.set(only, set)
  }
  return set
}

/**
 * Whether the lists match a request. A list with GET matches HEAD, because frameworks answer HEAD with GET's
 * handler.
 */
function matchesLists({ methods, subjects, tiers, scopes }: Lists, asked: RuleQuery): boolean {
  const { method, tier, scope } = asked
  return (
    (methods === null || (method !== null && isListed(methods, method))) &&
    (tiers === null || (tier !== null && tiers.has(tier))) &&
    (scopes === null || (scope !== null && scopes.has(scope))) &&
    (subjects === null || asked.subjectTypes.some(type => subjects.has(type)))
  )
}

/** Whether the first lists match every request that the second ones match. */
function coversLists(first: Lists, second: Lists): boolean {
  return (
    holdsAll(first.subjects, second.subjects) &&
    holdsAll(first.tiers, second.tiers) &&
    holdsAll(first.scopes, second.scopes) &&
    (first.methods === null ||
      (second.methods !== null && [...second.methods].every(method => isListed(first.methods, method))))
  )
}

function isListed(methods: ReadonlySet<string> | null, method: string): boolean {
  return methods === null || methods.has(method) || (method === 'HEAD' && methods.has('GET'))
}

function holdsAll(first: ReadonlySet<string> | null, second: ReadonlySet<string> | null): boolean {
  if (first === null) return true
  if (second === null || second.size > first.size) return false
  for (const word of second) if (!first.has(word)) return false
  return true
}

type Key = 'scope' | 'tier' | 'subject' | 'method'

/** Up to this many entries are scanned one by one. */
const FEW = 4

/**
 * Entries that share a path. Once there are many, each is indexed under the words of one of its lists, so that
 * entries for other scopes, tiers, subjects or methods do not slow the search down.
 */
export class Candidates<Value> {
  /** In file order: all entries while there are few, then only those without any list. */
  private always: Entry<Value>[] = []
  private keyed: Record<Key, Map<string, Entry<Value>[]>> | null = null

  /** Adds an entry. Must be called in file order. */
  add(entry: Entry<Value>): void {
    if (this.keyed === null && this.always.length < FEW) this.always.push(entry)
    else this.addByList(entry)
  }

  private addByList(entry: Entry<Value>): void {
    if (this.keyed === null) {
      const few = this.always
      this.always = []
      this.keyed = { scope: new Map(), tier: new Map(), subject: new Map(), method: new Map() }
      for (const other of few) this.addByList(other)
    }
    const { scopes, tiers, subjects, methods } = entry.lists
    if (scopes !== null) this.addKeyed('scope', scopes, entry)
    else if (tiers !== null) this.addKeyed('tier', tiers, entry)
    else if (subjects !== null) this.addKeyed('subject', subjects, entry)
    else if (methods !== null) this.addKeyed('method', methods, entry)
    else this.always.push(entry)
  }

  private addKeyed(key: Key, words: ReadonlySet<string>, entry: Entry<Value>): void {
    const byWord = this.keyed?.[key]
    for (const word of words) {
      const list = byWord?.get(word)
      if (list === undefined) byWord?.set(word, [entry])
      else list.push(entry)
    }
  }

  /** Returns the first matching entry that precedes `best` in the file, or else `best`. */
  first(asked: RuleQuery, best: Entry<Value> | null): Entry<Value> | null {
    let found = firstOf(this.always, asked, best)
    if (this.keyed === null) return found
    const { scope, tier, subject, method } = this.keyed
    if (asked.scope !== null) found = firstOf(scope.get(asked.scope), asked, found)
    if (asked.tier !== null) found = firstOf(tier.get(asked.tier), asked, found)
    if (subject.size > 0)
      for (const type of asked.subjectTypes) found = firstOf(subject.get(type), asked, found)
    if (asked.method === null) return found
    found = firstOf(method.get(asked.method), asked, found)
    return asked.method === 'HEAD' ? firstOf(method.get('GET'), asked, found) : found
  }

  /** Returns the first entry that hides every later one with these lists, or null. */
  cover(lists: Lists): Entry<Value> | null {
    const covers = (list: readonly Entry<Value>[] | undefined) =>
      list?.find(entry => coversLists(entry.lists, lists))
    const { keyed } = this
    const anyOf = (words: ReadonlySet<string> | null): string => words?.values().next().value ?? ''
    const method = anyOf(lists.methods)
    return (
      covers(this.always) ??
      (keyed === null
        ? undefined
        : (covers(keyed.scope.get(anyOf(lists.scopes))) ??
          covers(keyed.tier.get(anyOf(lists.tiers))) ??
          covers(keyed.subject.get(anyOf(lists.subjects))) ??
          covers(keyed.method.get(method)) ??
          (method === 'HEAD' ? covers(keyed.method.get('GET')) : undefined))) ??
      null
    )
  }
}

function firstOf<Value>(
  entries: readonly Entry<Value>[] | undefined,
  asked: RuleQuery,
  best: Entry<Value> | null,
): Entry<Value> | null {
  if (entries === undefined) return best
  for (const entry of entries) {
    if (best !== null && entry.order >= best.order) return best
    if (matchesLists(entry.lists, asked)) return entry
  }
  return best
}
