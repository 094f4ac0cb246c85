// Writes docs/reference/api from the sources of the library: a page for each entry point, with every option of every function.

import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application, Converter } from 'typedoc'

const LIBRARY = fileURLToPath(new URL('../../packages/headgate/', import.meta.url))
const TARGET = fileURLToPath(new URL('../reference/api/', import.meta.url))

const { exports } = JSON.parse(readFileSync(join(LIBRARY, 'package.json'), 'utf8'))
/** The sources behind `exports`, by the name that is imported. */
const ENTRY_POINTS = Object.entries(exports)
  .filter(([, target]) => target.default)
  .map(([path, target]) => ({
    name: `headgate${path.slice(1)}`,
    source: join(LIBRARY, target.default.replace('/dist/', '/src/').replace(/\.js$/, '.ts')),
  }))

/** Writes the pages. */
export async function writeApiReference() {
  const app = await Application.bootstrapWithPlugins({
    entryPoints: ENTRY_POINTS.map(({ source }) => source),
    tsconfig: join(LIBRARY, 'tsconfig.json'),
    plugin: ['typedoc-plugin-markdown'],
    out: TARGET,
    readme: 'none',
    kindSortOrder: ['Module', 'Function', 'Class', 'Interface', 'TypeAlias', 'Variable'],
    groupOrder: ['Functions', 'Classes', 'Interfaces', '*'],
    router: 'module',
    flattenOutputFiles: true,
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    excludeExternals: true,
    disableSources: true,
    logLevel: 'Error',
    validation: false,
    ...{ hidePageHeader: true, hideBreadcrumbs: true, useCodeBlocks: true, expandParameters: true },
    ...{ parametersFormat: 'table', interfacePropertiesFormat: 'table', typeDeclarationFormat: 'table' },
    ...{ propertyMembersFormat: 'table', enumMembersFormat: 'table', indexFormat: 'table' },
  })
  // Modules are named as they are imported.
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) {
      const name = module.name.replace(/\/?index$/, '')
      module.name = name === '' ? 'headgate' : `headgate/${name}`
    }
  })
  const project = await app.convert()
  if (!project) throw new Error('the API reference could not be read from the sources')
  await app.generateOutputs(project)
  // The menu lists the entry points.
  rmSync(join(TARGET, 'README.md'))
}
