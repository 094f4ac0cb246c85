/** The contents of both packages' tarballs. `npm run check` installs them and loads every entry point. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ErrorCode, HeadgateError } from '../../src/errors/headgate-error.ts'
import { unpackInto } from './packed.ts'

const PACKAGES = ['headgate', '@headgate/server'] as const
const RUN_ON_INSTALL = ['preinstall', 'install', 'postinstall', 'prepare']

interface Manifest {
  readonly scripts?: Record<string, string>
  readonly dependencies?: Record<string, string>
  readonly keywords?: readonly string[]
  readonly homepage?: string
  readonly repository?: { readonly url: string; readonly directory: string }
}

let folder: string
const packedSizes = new Map<string, number>()
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-published-'))
  for (const name of PACKAGES) packedSizes.set(name, await unpackInto(join(folder, name), name))
}, 180_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

const read = (name: string, file: string): Promise<string> => readFile(join(folder, name, file), 'utf8')
const manifestOf = async (name: string): Promise<Manifest> => JSON.parse(await read(name, 'package.json'))
const filesOf = async (name: string): Promise<string[]> =>
  (await readdir(join(folder, name), { recursive: true, withFileTypes: true }))
    .filter(entry => entry.isFile())
    .map(entry => relative(join(folder, name), join(entry.parentPath, entry.name)))

describe.each(PACKAGES)('%s, as it is published', name => {
  it('a package runs nothing when it is installed, and the library needs nothing', async () => {
    const { scripts = {}, dependencies } = await manifestOf(name)
    expect(Object.keys(scripts).filter(script => RUN_ON_INSTALL.includes(script))).toEqual([])
    if (name === 'headgate') expect(dependencies).toBeUndefined()
  })

  it('a package says where it comes from, what it is about and where to read on', async () => {
    const { repository, homepage, keywords = [] } = await manifestOf(name)
    expect(repository?.url).toMatch(/^git\+https:\/\/.+\.git$/)
    expect(repository?.directory).toBe(`packages/${name.replace('@headgate/', '')}`)
    expect(homepage).toMatch(/^https:\/\//)
    expect(keywords).toContain('rate-limit')
    expect(await read(name, 'README.md')).toContain(`npm install ${name}`)
    expect(await read(name, 'LICENSE')).toContain('MIT')
  })

  it('every link of a README leads somewhere from the package', async () => {
    const links = [...(await read(name, 'README.md')).matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link)
    const files = await filesOf(name)
    expect(links.filter(link => !link.startsWith('https://') && !files.includes(link))).toEqual([])
  })

  it('a package carries no tests, no sources and no notes of the compiler', async () => {
    expect((await filesOf(name)).filter(file => /\.test\.|\.tsbuildinfo$|^src\/|^test\//.test(file))).toEqual(
      [],
    )
  })
})

it('the library is at most 300 kB in 134 files, without source maps', async () => {
  const files = await filesOf('headgate')
  expect(packedSizes.get('headgate')).toBeLessThanOrEqual(300_000)
  expect(files.length).toBeLessThanOrEqual(134)
  expect(files.filter(file => file.endsWith('.map'))).toEqual([])
})

it('every file of the library finds what it imports, starts and gets its types from', async () => {
  const files = await filesOf('headgate')
  const relativeImports = /(?:\bfrom|\bimport\(?|\brequire\(|new URL\() ?["'`](\.{1,2}\/[^"'`]+\.js)["'`]/g
  for (const file of files.filter(name => /\.(?:js|d\.ts)$/.test(name))) {
    const imported = [...(await read('headgate', file)).matchAll(relativeImports)].map(([, path = '']) =>
      join(file, '..', file.endsWith('.d.ts') ? path.replace(/\.js$/, '.d.ts') : path),
    )
    expect(
      imported.filter(path => !files.includes(path)),
      file,
    ).toEqual([])
  }
})

it.each(['AGENTS.md', 'skills/headgate/SKILL.md'])(
  'the library brings %s, which names only entry points it has and links to files it brings',
  async file => {
    const text = await read('headgate', file)
    const { exports } = (await manifestOf('headgate')) as { exports: Record<string, unknown> }
    const named = [...text.matchAll(/headgate\/([a-z-]+)(?=['`])/g)].map(([, name]) => `./${name}`)
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter(name => !(name in exports))).toEqual([])
    const files = await filesOf('headgate')
    const links = [...text.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, link = '']) =>
      join(file, '..', link),
    )
    expect(links.filter(link => !files.includes(link))).toEqual([])
    if (file.endsWith('SKILL.md')) expect(text).toMatch(/^---\nname: headgate\ndescription: ".+"\n---\n/)
  },
)

it('the server brings the page of its dashboard', async () => {
  expect(await read('@headgate/server', 'dist/page/index.html')).toContain('<script')
})

it('every error leads to a line of the page that is published with the library', async () => {
  const page = await read('headgate', 'docs/errors.md')
  const codes = new Set(page.match(/ERR_HEADGATE_[A-Z_]+/g) as ErrorCode[])
  expect(codes.size).toBeGreaterThan(10)
  for (const code of codes) {
    const { pathname, hash } = new URL(new HeadgateError(code, 'some message').help)
    expect(pathname).toBe('/headgate/docs/errors.md')
    expect(page).toContain(`<a id="${hash.slice(1)}"></a>`)
  }
})
