interface Finder {
  ensureProgram(name: string): Promise<string>
}

const found = new Map<string, Promise<string>>()

/**
 * Returns the path of a program that tests talk to (`nginx`, `chromium` …), installed if missing, once per process.
 */
export function systemProgram(name: string): Promise<string> {
  const path = found.get(name) ?? locate(name)
  found.set(name, path)
  return path
}

async function locate(name: string): Promise<string> {
  const finder = new URL('../../../../scripts/system-programs.mjs', import.meta.url).href
  const { ensureProgram } = (await import(finder)) as Finder
  return ensureProgram(name)
}
