/** The previous version, kept by record.mjs: what it stored, and its Redis store to run beside ours. */
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { allAlgorithms } from '../../src/algorithms/all-algorithms.ts'
import type { Check } from '../../src/check/check.ts'
import type { askStore } from '../../src/store/ask-store.ts'
import type { StoredEntry } from '../../src/store/control-store.ts'
import type { redisStore } from '../../src/store/redis/redis-store.ts'

const FIXTURES = new URL('../fixtures/previous/', import.meta.url)

/** A key as Redis held it: the fields of a hash, the members and scores of a sorted set, or a text. */
export interface StoredKey {
  readonly key: string
  readonly type: 'hash' | 'zset' | 'string'
  readonly value: Readonly<Record<string, string>> | readonly string[] | string
  /** −1 for a key that does not expire. */
  readonly ttlMs: number
  readonly expiresAtMs: number
}

export interface StoredState {
  readonly name: string
  readonly tenant: string
  readonly check: Check
  readonly stored: StoredKey
  /** Redis's time when it was read. */
  readonly nowUs: number
  /** Charges that had not been taken back. */
  readonly charges: readonly { readonly units: number; readonly chargedAtUs: number }[]
  /** The previous version's answers to a peek so long after `nowUs`. */
  readonly answers: readonly {
    readonly afterUs: number
    readonly cost: number
    readonly remaining: number
    readonly retryAfterUs: number
    readonly resetAfterUs: number
  }[]
}

interface Stored {
  readonly states: readonly StoredState[]
  readonly operators: {
    readonly stored: readonly StoredKey[]
    readonly nowUs: number
    readonly reading: {
      readonly control: Readonly<Record<string, string>>
      readonly overrides: readonly (StoredEntry & {
        readonly target: string
        readonly expiresInMs: number
      })[]
    }
  }
  readonly fleet: { readonly stored: StoredKey; readonly nowUs: number; readonly live: number }
}

export const previouslyStored = JSON.parse(
  readFileSync(new URL('stored.json', FIXTURES), 'utf8'),
  (_, value) =>
    typeof value?.algorithm === 'string'
      ? { ...value, algorithm: allAlgorithms.get(value.algorithm) }
      : value,
) as Stored

/** What the previous version's module has: its store, and its own algorithms to ask it with. */
export interface PreviousModule {
  readonly redisStore: typeof redisStore
  readonly askStore: typeof askStore
  readonly allAlgorithms: typeof allAlgorithms
}

/** A check whose limit has the previous version's algorithm. */
export function asPrevious(check: Check, previous: PreviousModule): Check {
  const algorithm = previous.allAlgorithms.get(check.limit.algorithm.name) ?? check.limit.algorithm
  return { ...check, limit: { ...check.limit, algorithm } }
}

/** Unpacks the previous version's Redis store to a module; call `remove` when nobody will load it any more. */
export async function unpackPrevious(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-previous-'))
  const path = join(folder, 'redis.mjs')
  await writeFile(path, gunzipSync(await readFile(new URL('redis.mjs.gz', FIXTURES))))
  return { path, remove: () => rm(folder, { recursive: true, force: true }) }
}
