import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { WatchOptions } from '../../src/config/watch-config.js'
import { type WatchedConfig, watchConfig } from '../../src/config.js'

const LIBRARY = new URL('../../dist/config.js', import.meta.url).href
/**
 * Takes every descriptor, writes the file, and releases the descriptors when the failure was reported. Prints the
 * reports.
 */
const WITHOUT_DESCRIPTORS = `
  import { closeSync, openSync, writeFileSync } from 'node:fs'
  const [file, library] = process.argv.slice(1)
  const { watchConfig } = await import(library)
  const kept = setTimeout(() => process.exit(1), 10_000)
  const open = []
  const watched = await watchConfig(file, {
    pollMs: 50,
    onConfig(config) {
      console.log(config.tenant)
      clearTimeout(kept)
      watched.close()
    },
    onError(error) {
      console.log(error.message)
      for (const descriptor of open.splice(0)) closeSync(descriptor)
    },
  })
  const writable = openSync(file, 'w')
  try {
    while (true) open.push(openSync(file, 'r'))
  } catch {
    writeFileSync(writable, 'tenant: two\\n')
    closeSync(writable)
    open.push(openSync(file, 'r'))
  }
`

let folder = ''
let watched: WatchedConfig | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-watch-'))
})
afterEach(() => {
  watched?.close()
  rmSync(folder, { recursive: true, force: true })
})

/**
 * Watches `headgate.yaml` in the folder, and keeps what was reported: tenants of good files, messages of bad ones.
 */
async function watchFile(options: Partial<WatchOptions> = {}) {
  const told: string[] = []
  const file = join(folder, 'headgate.yaml')
  watched = await watchConfig(file, {
    onConfig: config => told.push(config.tenant ?? 'none'),
    onError: error => told.push((error as Error).message),
    ...options,
  })
  return { file, told, watched }
}

function write(tenant: string, name = 'headgate.yaml'): string {
  const file = join(folder, name)
  writeFileSync(file, `tenant: ${tenant}\n`)
  return file
}

describe('a policy file that is watched', () => {
  it('a policy file that is watched must be sound at first', async () => {
    await expect(watchFile()).rejects.toThrow('no such file')
    writeFileSync(join(folder, 'headgate.yaml'), 'tenat: a\n')
    await expect(watchFile()).rejects.toThrow('did you mean "tenant"?')
  })

  it('a watched file is reported when it is written, and not when only its time changes', async () => {
    write('one')
    const { told, watched } = await watchFile()
    expect(watched.config.tenant).toBe('one')
    write('two')
    await expect.poll(() => told).toEqual(['two'])
    expect(watched.config.tenant).toBe('two')
    write('two')
    await sleep(300)
    expect(told).toEqual(['two'])
  })

  it('a watched file is reported when another file takes its name, again and again', async () => {
    write('one')
    const { file, told } = await watchFile()
    for (const tenant of ['two', 'three', 'four']) {
      renameSync(write(tenant, 'new.tmp'), file)
      await expect.poll(() => told.at(-1)).toBe(tenant)
    }
  })

  it('a watched file is reported when a link to its folder moves on, as in a mounted ConfigMap', async () => {
    for (const version of ['v1', 'v2']) {
      mkdirSync(join(folder, version))
      write(version, `${version}/headgate.yaml`)
    }
    symlinkSync('v1', join(folder, '..data'))
    symlinkSync('..data/headgate.yaml', join(folder, 'headgate.yaml'))
    const { told } = await watchFile()
    symlinkSync('v2', join(folder, '..tmp'))
    renameSync(join(folder, '..tmp'), join(folder, '..data'))
    await expect.poll(() => told).toEqual(['v2'])
  })

  it('a watched file is looked at from time to time where the system says nothing', async () => {
    mkdirSync(join(folder, 'elsewhere'))
    write('one', 'elsewhere/real.yaml')
    symlinkSync('elsewhere/real.yaml', join(folder, 'headgate.yaml'))
    // The watch is on the folder of the link, where nothing happens.
    const { told } = await watchFile({ pollMs: 50 })
    write('twenty', 'elsewhere/real.yaml')
    await expect.poll(() => told).toEqual(['twenty'])
  })

  it('a listener that throws does not keep a file from being watched', async () => {
    write('one')
    const lines: string[] = []
    const line = (_fields: unknown, message: string) => lines.push(message)
    const { told, watched } = await watchFile({
      logger: { info: line, warn: line, error: line },
      onError() {
        throw new Error('mine')
      },
    })
    writeFileSync(join(folder, 'headgate.yaml'), 'tenant: [')
    await watched.reload()
    write('two')
    await watched.reload()
    expect([told, lines]).toEqual([['two'], [expect.stringContaining('mine')]])
  })

  it('a file that is replaced while it is first read is loaded at the next look, whenever that was', async () => {
    for (let turns = 0; turns < 30; turns++) {
      const file = write('one')
      const began = watchFile({ pollMs: 10 })
      for (let turn = 0; turn < turns; turn++) await new Promise(resolve => setImmediate(resolve))
      renameSync(write('another', 'next.yaml'), file)
      const { watched } = await began
      await vi.waitFor(() => expect(watched.config.tenant).toBe('another'), 20_000)
      watched.close()
    }
  })

  it('the last good file stays in force while the new one is broken or gone, and that is said once', async () => {
    write('one')
    const { file, told, watched } = await watchFile({ pollMs: 20 })
    writeFileSync(file, 'tenat: two\n')
    await expect.poll(() => told).toEqual([expect.stringContaining('did you mean "tenant"?')])
    expect(watched).toMatchObject({ isStale: true, config: { tenant: 'one' } })
    unlinkSync(file)
    await expect.poll(() => told.at(-1)).toContain('no such file')
    await sleep(200)
    expect(told).toHaveLength(2)
    write('one')
    await expect.poll(() => told.at(-1)).toBe('one')
    expect(watched).toMatchObject({ isStale: false, config: { tenant: 'one' } })
  })

  it('a file that could not be read for want of descriptors is read when there are some again', async () => {
    write('one')
    const { stdout } = await promisify(execFile)('sh', [
      '-c',
      'ulimit -n 100 && exec "$0" --input-type=module -e "$1" "$2" "$3"',
      process.execPath,
      WITHOUT_DESCRIPTORS,
      join(folder, 'headgate.yaml'),
      LIBRARY,
    ])
    expect(stdout.trim().split('\n')).toEqual([expect.stringContaining('EMFILE'), 'two'])
  })

  it('a watched file is stale if it could not be put in place', async () => {
    write('one')
    let rejects = true
    const { watched, told } = await watchFile({
      onConfig: () => {
        if (rejects) throw new Error('not this one')
      },
    })
    write('two')
    await watched.reload()
    expect(told.at(-1)).toBe('not this one')
    expect(watched).toMatchObject({ isStale: true, config: { tenant: 'one' } })
    rejects = false
    await watched.reload()
    expect(watched).toMatchObject({ isStale: false, config: { tenant: 'two' } })
  })

  it('a watched file is read again on demand, changed or not, and not after it was closed', async () => {
    write('one')
    const { watched, told } = await watchFile()
    await watched.reload()
    expect(told).toEqual(['one'])
    watched.close()
    write('two')
    await watched.reload()
    await sleep(200)
    expect(told).toEqual(['one'])
  })
})
