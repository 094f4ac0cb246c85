import { readFileSync } from 'node:fs'

/** Returns the version of this package, from its published package.json. */
export function readVersion(): string {
  const manifest = new URL('../../package.json', import.meta.url)
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  return version
}
