// Writes the package as it is published into a folder: one file for each entry point and the code they share, as ES modules
// (dist/) and as CommonJS for Jest and older compilers (cjs/), with their types. Nothing in the workspace uses it: tests and
// the server run what the compiler wrote.

import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'
import { readGraph, sharedChunks } from './shared-chunks.mjs'
import { toCommonJs } from './to-commonjs.mjs'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const DIST = join(PACKAGE, 'dist')
const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url))

/** Everything that is not ours: Node's modules, and the frameworks and clients an application brings. */
const external = id => !/^[./]/.test(id)

/**
 * Names of functions and classes stay, because they are what a stack trace shows.
 * Annotations stay, because they let bundlers drop what an application does not use.
 */
const OUTPUT = {
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  minify: { compress: true, mangle: { keepNames: true }, codegen: { removeWhitespace: true } },
  comments: { annotation: true, legal: false, jsdoc: false },
}

/**
 * Writes the package into `target`, which must not exist yet or be empty.
 *
 * @param {string} target
 */
export async function buildPackage(target) {
  if (!existsSync(join(DIST, 'index.js')))
    throw new Error(
      'packages/headgate/dist/index.js: expected what the build writes; run npm run build first',
    )
  const { scripts, devDependencies, files, ...manifest } = JSON.parse(
    await readFile(join(PACKAGE, 'package.json'), 'utf8'),
  )
  const put = async (path, text) => {
    await mkdir(dirname(join(target, path)), { recursive: true })
    await writeFile(join(target, path), text)
  }
  const entries = entryPointsOf(manifest)
  const onlyEsm = new Set(
    Object.values(manifest.exports).flatMap(({ default: file, require }) =>
      file && !require ? [file.replace('./dist/', '')] : [],
    ),
  )
  const { output, threads } = await bundleCode(entries)
  for (const name of threads) onlyEsm.add(`${name}.js`)
  for (const { fileName, code } of output) {
    await put(`dist/${fileName}`, code)
    if (!onlyEsm.has(fileName)) await put(`cjs/${fileName}`, toCommonJs(withThreadsOf('../dist', code)))
  }
  for (const { fileName, code, isEntry } of await bundleTypes(entries)) {
    if (!onlyEsm.has(fileName.replace(/\.d\.ts$/, '.js'))) await put(`cjs/${fileName}`, code)
    if (isEntry) await put(`dist/${fileName}`, withSharedTypesOf('cjs', code, fileName))
  }
  await put('cjs/package.json', '{ "type": "commonjs" }\n')
  await put('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
  for (const file of ['README.md', 'LICENSE', 'headgate.schema.json'])
    await cp(join(PACKAGE, file), join(target, file))
  const { agents, skill } = assistantsOf(await readFile(join(DOCS, 'guide/assistants.md'), 'utf8'))
  await put('AGENTS.md', agents)
  await put('skills/headgate/SKILL.md', skill)
  await put('docs/errors.md', await readFile(join(DOCS, 'reference/errors.md'), 'utf8'))
}

/** Node starts a thread from an ES module, whoever asks for it. */
function withThreadsOf(folder, code) {
  return code.replace(/(new URL\(['"`])\.(\/[\w-]+\.js['"`],import\.meta\.url)/g, `$1${folder}$2`)
}

/** Types that entry points share are there once: an ES module may import them from CommonJS, but not the reverse. */
function withSharedTypesOf(folder, code, fileName) {
  const toFolder = `${'../'.repeat(fileName.split('/').length)}${folder}/`
  return code.replace(/(from ")(?:\.{1,2}\/)+(types\b[^"]*")/g, `$1${toFolder}$2`)
}

/** What coding assistants read, from the page of the docs: all but its first paragraph, which is about these files. */
function assistantsOf(page) {
  const text = page
    .replace(/^# .+\n\n[\s\S]+?\n\n/, '')
    .replaceAll('](../reference/errors.md)', '](../docs/errors.md)')
  const about =
    'Rate limiting with Headgate in TypeScript and JavaScript: Express, Fastify, Hono, Koa, Next.js, NestJS, Redis.'
  return {
    agents: `# Headgate\n\n${text.replaceAll('](../docs/', '](docs/')}`,
    skill: `---\nname: headgate\ndescription: "${about}"\n---\n\n${text.replaceAll('](../docs/', '](../../docs/')}`,
  }
}

/** Entry points by their name in dist/, as `exports` of the manifest has them. */
function entryPointsOf({ exports }) {
  const files = Object.values(exports).flatMap(target => target.default ?? [])
  return Object.fromEntries(files.map(file => [file.replace(/^\.\/dist\/|\.js$/g, ''), join(PACKAGE, file)]))
}

async function bundleCode(entries) {
  const graph = await readGraph(entries, external)
  // A thread is started from a file of its own, found beside the code that starts it.
  const threads = [...graph].flatMap(([id, { code }]) =>
    [...code.matchAll(/new URL\('\.\/([\w-]+)\.js', import\.meta\.url\)/g)].map(([, name]) => [
      name,
      join(dirname(id), `${name}.js`),
    ]),
  )
  const input = { ...entries, ...Object.fromEntries(threads) }
  const chunkOf = sharedChunks(await readGraph(input, external), input, OUTPUT.minify)
  const bundle = await rolldown({
    input,
    external,
    platform: 'node',
    preserveEntrySignatures: 'allow-extension',
    experimental: { attachDebugInfo: 'none' },
  })
  const { output } = await bundle.generate({
    ...OUTPUT,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: 'shared', name: id => chunkOf.get(id) ?? null }],
    },
  })
  return { output, threads: threads.map(([name]) => name) }
}

/**
 * The compiler names a type by the shortest path to it, which may be an entry point, with all that it exports. This names
 * the module that the entry point has it from.
 */
function typesWhereTheyAre(entries) {
  const origins = new Map()
  for (const entry of entries) {
    const exported = readFileSync(entry, 'utf8').matchAll(/^export (?:type )?\{([^}]+)\} from '(.+)'/gm)
    for (const [, names, from] of exported) {
      for (const name of names.split(',')) origins.set(`${entry} ${name.trim()}`, join(dirname(entry), from))
    }
  }
  return {
    name: 'types-where-they-are',
    transform(code, id) {
      return code.replace(/import\("(\.[^"]+)\.js"\)\.(\w+)/g, (text, path, name) => {
        const origin = origins.get(`${join(dirname(id), path)}.d.ts ${name}`)
        return origin === undefined ? text : `import("./${relative(dirname(id), origin)}").${name}`
      })
    },
  }
}

async function bundleTypes(entries) {
  const input = Object.fromEntries(
    Object.entries(entries).map(([name, file]) => [name, file.replace(/\.js$/, '.d.ts')]),
  )
  const bundle = await rolldown({
    input,
    external,
    preserveEntrySignatures: 'allow-extension',
    experimental: { attachDebugInfo: 'none' },
    plugins: [typesWhereTheyAre(Object.values(input)), dts({ dtsInput: true, tsconfig: false })],
  })
  const { output } = await bundle.generate({
    format: 'esm',
    entryFileNames: '[name].ts',
    chunkFileNames: '[name].ts',
    minifyInternalExports: false,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: 'types.d', minShareCount: 2, test: id => !namesFramework(id) }],
    },
  })
  const stray = output.filter(({ isEntry, name }) => !isEntry && !name.startsWith('types'))
  if (stray.length > 0)
    throw new Error(`types that entry points share name a framework: ${stray[0].moduleIds}`)
  return output
}

/** Types of a framework are only for those who have it: they stay out of what all entry points import. */
function namesFramework(id) {
  return /\b(?:from|import|module) ?\(?['"](?!\.|node:)/.test(readFileSync(id, 'utf8'))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [target] = process.argv.slice(2)
  await rm(target, { recursive: true, force: true })
  await buildPackage(target)
}
