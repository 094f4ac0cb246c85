/** Runs programs that the documentation shows, as they stand there. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { transform } from 'esbuild'

const GUIDES = new URL('../../../../docs/guide/', import.meta.url)
/** Where imports are found as they are in an app, and nothing is committed. */
const FOLDER = new URL('../../node_modules/.shown/', import.meta.url)

/** What the first program after `before` on a page of the guide exports. */
export async function runShown<Exports>(page: string, before: string): Promise<Exports> {
  const text = await readFile(new URL(page, GUIDES), 'utf8')
  const at = text.indexOf(before)
  const shown = at < 0 ? undefined : /```ts\n([\s\S]*?)```/.exec(text.slice(at))?.[1]
  if (shown === undefined) throw new Error(`${page}: expected a program after "${before}"; there is none`)
  const { code } = await transform(shown, {
    loader: 'ts',
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  })
  await mkdir(FOLDER, { recursive: true })
  const file = new URL(`${`${page}-${before}`.replace(/\W+/g, '-')}.mjs`, FOLDER)
  await writeFile(file, code)
  return (await import(/* @vite-ignore */ file.href)) as Exports
}
