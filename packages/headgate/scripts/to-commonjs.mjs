// Rewrites a bundled ES module as CommonJS. Only its imports and exports change, so that gzip sees the rest as a repetition.

import { parseAst } from 'rolldown/parseAst'

/**
 * Returns the CommonJS form of a module that the bundler wrote. Exports are set when the module ends: files of the package do
 * not import each other in a circle.
 *
 * @param {string} code
 */
export function toCommonJs(code) {
  const edits = []
  let exported = ''
  for (const statement of parseAst(code).body) {
    if (statement.type === 'ImportDeclaration') edits.push([statement, requireOf(statement)])
    else if (statement.type === 'ExportNamedDeclaration') {
      if (statement.declaration !== null)
        throw new Error(`expected a list of exports; got ${textOf(code, statement)}`)
      exported += exportsOf(statement)
      edits.push([statement, ''])
    } else if (statement.type.startsWith('Export'))
      throw new Error(`expected a list of exports; got ${textOf(code, statement)}`)
  }
  let result = code
  for (const [{ start, end }, text] of edits.reverse())
    result = result.slice(0, start) + text + result.slice(end)
  // Jest has no import() outside of its experimental modules.
  result = result
    .replace(/\bimport\((["'`][^"'`]+["'`])\)/g, 'Promise.resolve().then(()=>require($1))')
    .replaceAll('import.meta.url', 'require("node:url").pathToFileURL(__filename).href')
  if (/\bimport\s*\(|\bimport\.meta\b/.test(result))
    throw new Error('expected no import() or import.meta to be left')
  return `"use strict";Object.defineProperty(exports,"__esModule",{value:true});${result.trimEnd()}\n${exported}\n`
}

function requireOf({ specifiers, source }) {
  const module = `require(${JSON.stringify(source.value)})`
  if (specifiers.length === 0) return `${module};`
  const [first] = specifiers
  if (first.type === 'ImportNamespaceSpecifier') return `const ${first.local.name}=${module};`
  const names = specifiers.map(({ type, imported, local }) => {
    const name = type === 'ImportDefaultSpecifier' ? 'default' : imported.name
    return name === local.name ? name : `${name}:${local.name}`
  })
  return `const{${names.join(',')}}=${module};`
}

/** A name from elsewhere is given on as it is; one of the module's own is exported when it has its value. */
function exportsOf({ specifiers, source }) {
  const from = source === null ? '' : `require(${JSON.stringify(source.value)}).`
  return specifiers.map(({ local, exported }) => `exports.${exported.name}=${from}${local.name};`).join('')
}

function textOf(code, { start, end }) {
  return code.slice(start, Math.min(end, start + 60))
}
