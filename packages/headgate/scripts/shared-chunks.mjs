// Which file of the published package a shared module goes into.

import { basename } from 'node:path'
import { rolldown } from 'rolldown'

/**
 * The two copies of a file lie side by side in the tarball, and gzip finds repetitions within 32 kB: a file below that costs
 * the download once, not twice. Bytes before minification, which halves them.
 */
const LARGEST = 50_000

/** A group below this is not worth a file. */
const SMALLEST = 30_000

/**
 * Reads every module that the entry points reach: its code, its length once comments are gone, and what it imports.
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
        if (code !== null)
          graph.set(id, { code, size: 0, imports: importedIds, loads: dynamicallyImportedIds })
      }
    },
  }
  const bundle = await rolldown({ input: entries, external, platform: 'node', plugins: [read] })
  const { output } = await bundle.generate({ comments: false })
  for (const { modules } of output)
    for (const [id, { renderedLength }] of Object.entries(modules)) graph.get(id).size = renderedLength
  return graph
}

/**
 * Returns the name of the file for each module that several entry points share. Modules that the same entry points share are
 * one file, as are all that the main entry point reaches; a small file joins one that is loaded with it anyway. No file
 * imports one that imports it.
 *
 * @param {Awaited<ReturnType<typeof readGraph>>} graph
 * @param {Record<string, string>} entries
 * @returns {Map<string, string>}
 */
export function sharedChunks(graph, entries) {
  const core = { name: 'core', isLoadedWith: () => true, modules: [] }
  const files = [core]
  const small = []
  for (const group of groupsOf(graph, entries)) {
    if (group.names.includes('index')) core.modules.push(...group.modules)
    else if (sizeOf(graph, group.modules) < SMALLEST) small.push(group)
    else files.push(fileOf(graph, group))
  }
  for (const group of small) {
    const host = files.findLast(
      file => file.isLoadedWith(group.names) && isAcyclic(graph, files, file, group.modules),
    )
    if (host) host.modules.push(...group.modules)
    else files.push(fileOf(graph, group))
  }
  return new Map(files.flatMap(file => cut(graph, file)))
}

/** Groups shared modules by the entry points that reach them, those of the most entry points first. */
function groupsOf(graph, entries) {
  const apart = new Set([...Object.values(entries), ...[...graph.values()].flatMap(({ loads }) => loads)])
  const groups = new Map()
  for (const [id, names] of usersOf(graph, entries)) {
    if (apart.has(id) || names.length < 2) continue
    const key = names.includes('index') ? 'index' : names.join()
    const group = groups.get(key) ?? { names, modules: [] }
    group.modules.push(id)
    groups.set(key, group)
  }
  return [...groups.values()].sort((one, other) => other.names.length - one.names.length)
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

function fileOf(graph, { names, modules }) {
  const [largest] = modules.toSorted((one, other) => graph.get(other).size - graph.get(one).size)
  const isLoadedWith = others => others.every(name => names.includes(name))
  return { name: `shared-${basename(largest, '.js')}`, isLoadedWith, modules: [...modules] }
}

/** Whether a file still imports nothing that imports it, once more modules are in it. */
function isAcyclic(graph, files, host, added) {
  const inHost = new Set([...host.modules, ...added])
  const elsewhere = new Set(files.flatMap(({ modules }) => modules).filter(id => !inHost.has(id)))
  const imported = [...inHost].flatMap(id => graph.get(id).imports).filter(id => elsewhere.has(id))
  return reachedFrom(graph, imported).every(id => !inHost.has(id))
}

/** Cuts a file that is too large, in an order in which each part imports only earlier ones. */
function cut(graph, { name, modules }) {
  const inFile = new Set(modules)
  let [part, size] = [1, 0]
  return reachedFrom(graph, modules)
    .filter(id => inFile.has(id))
    .map(id => {
      const length = graph.get(id).size
      if (size > 0 && size + length > LARGEST) [part, size] = [part + 1, 0]
      size += length
      return [id, part === 1 ? name : `${name}-${part}`]
    })
}

function sizeOf(graph, modules) {
  return modules.reduce((sum, id) => sum + graph.get(id).size, 0)
}
