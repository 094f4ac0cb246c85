// Which file of the published package a shared module goes into.

import { rolldown } from 'rolldown'
import { minifySync } from 'rolldown/utils'

/**
 * The two copies of a file lie side by side in the tarball, and gzip finds repetitions within 32 kB: a file below that costs
 * the download once, not twice.
 */
const LARGEST = 32_500

/**
 * Reads every module that the entry points reach: its code, and what it imports and loads later.
 *
 * @param {Record<string, string>} entries
 * @param {(id: string) => boolean} external
 */
export async function readGraph(entries, external) {
  const graph = new Map()
  const read = {
    name: 'read-graph',
    buildEnd() {
      for (const id of this.getModuleIds()) {
        const { code, importedIds, dynamicallyImportedIds } = this.getModuleInfo(id)
        if (code !== null) graph.set(id, { code, imports: importedIds, loads: dynamicallyImportedIds })
      }
    },
  }
  const bundle = await rolldown({ input: entries, external, platform: 'node', plugins: [read] })
  await bundle.generate()
  return graph
}

/**
 * Returns the name of the file for each module that several entry points share: those that the main entry point reaches
 * first, then those of the most entry points, cut where a file is full. What a module imports is reached by everything that
 * reaches the module, so it comes earlier, and no file imports one that imports it. What one entry point alone reaches is cut
 * likewise if it is too much for one file.
 *
 * @param {Awaited<ReturnType<typeof readGraph>>} graph
 * @param {Record<string, string>} entries
 * @param {import('rolldown').MinifyOptions} minify
 * @returns {Map<string, string>}
 */
export function sharedChunks(graph, entries, minify) {
  const apart = new Set([...Object.values(entries), ...[...graph.values()].flatMap(({ loads }) => loads)])
  const sizeOf = id => minifySync(id, graph.get(id).code, { ...minify, module: true }).code.length
  const users = [...usersOf(graph, entries)].filter(([id]) => !apart.has(id))
  const ownSizes = new Map()
  for (const [id, [name, other]] of users)
    if (other === undefined) ownSizes.set(name, (ownSizes.get(name) ?? 0) + sizeOf(id))
  const groups = new Map()
  for (const [id, names] of users) {
    if (names.length < 2 && ownSizes.get(names[0]) <= LARGEST) continue
    const key = names.includes('index') ? 'index' : names.join()
    groups.set(key, {
      rank: key === 'index' ? Number.POSITIVE_INFINITY : names.length,
      modules: [...(groups.get(key)?.modules ?? []), id],
    })
  }
  const inOrder = [...groups.values()].sort((one, other) => other.rank - one.rank)
  const chunkOf = new Map()
  let [part, size] = [1, 0]
  for (const { modules } of inOrder) {
    const inGroup = new Set(modules)
    for (const id of reachedFrom(graph, modules).filter(module => inGroup.has(module))) {
      const length = sizeOf(id)
      if (size > 0 && size + length > LARGEST) [part, size] = [part + 1, 0]
      size += length
      chunkOf.set(id, `shared-${part}`)
    }
  }
  return chunkOf
}

/** Returns the names of the entry points that reach each module. */
function usersOf(graph, entries) {
  const users = new Map()
  for (const [name, entry] of Object.entries(entries)) {
    for (const id of reachedFrom(graph, [entry])) users.set(id, [...(users.get(id) ?? []), name])
  }
  return users
}

/** Returns what some modules import, directly or not, and themselves: what is imported comes first. */
function reachedFrom(graph, ids) {
  const seen = new Set()
  const order = []
  const visit = id => {
    if (seen.has(id) || !graph.has(id)) return
    seen.add(id)
    const { imports, loads } = graph.get(id)
    for (const other of [...imports, ...loads]) visit(other)
    order.push(id)
  }
  for (const id of ids) visit(id)
  return order
}
