/** The files of the dashboard, which the build puts beside the compiled server. Read once, before it listens. */
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'

/** A file of the page, under the path at which it is served. */
export interface PageFile {
  readonly path: string
  readonly type: string
  readonly text: string
}

const FOLDER = new URL('../page/', import.meta.url)
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Reads all files of the page; empty if it has not been built. */
export async function readPageFiles(folder: URL = FOLDER): Promise<readonly PageFile[]> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = names.filter(entry => entry.isFile() && extname(entry.name) in TYPES)
  return Promise.all(
    files.map(async ({ name, parentPath }) => {
      const path = `${parentPath}/${name}`.slice(folder.pathname.length).replace(/^\/+/, '')
      const text = await readFile(new URL(path, folder), 'utf8')
      return { path: `/${path}`, type: TYPES[extname(name)] as string, text }
    }),
  )
}
