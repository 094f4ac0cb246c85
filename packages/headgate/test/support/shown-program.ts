/** Runs programs of the documentation as they are. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { transform } from 'esbuild'

const REPOSITORY = new URL('../../../../', import.meta.url)
/** Imports are found as in an app, and nothing is committed. */
const FOLDER = new URL('../../node_modules/.shown/', import.meta.url)

/** Returns the exports of the first program after `before` on a page of the guide. */
export function runShown<Exports>(page: string, before: string): Promise<Exports> {
  return runProgram(`docs/guide/${page}`, before, '')
}

/** Returns the export named `exports` of the first program after `before` on any page. */
export async function runShownAs<Exports>(page: string, before: string, exports: string): Promise<Exports> {
  return runProgram(page, before, `\nexport { ${exports} }\n`)
}

async function runProgram<Exports>(page: string, before: string, after: string): Promise<Exports> {
  const text = await readFile(new URL(page, REPOSITORY), 'utf8')
  const at = text.indexOf(before)
  const shown = at < 0 ? undefined : /```ts\n([\s\S]*?)```/.exec(text.slice(at))?.[1]
  if (shown === undefined) throw new Error(`${page}: expected a program after "${before}"; there is none`)
  const { code } = await transform(shown + after, {
    loader: 'ts',
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  })
  await mkdir(FOLDER, { recursive: true })
  const file = new URL(`${`${page}-${before}`.replace(/\W+/g, '-')}.mjs`, FOLDER)
  await writeFile(file, code)
  return (await import(/* @vite-ignore */ file.href)) as Exports
}
