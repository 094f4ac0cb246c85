import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from 'headgate/config'
import { afterAll, describe, expect, it } from 'vitest'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-init-'))
const file = join(folder, 'headgate.yaml')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('headgate init', () => {
  it('init writes a sound file, and never over another unless told to', async () => {
    const written = await runInProcess(['init', file])
    expect(written).toEqual({
      code: 0,
      out: `${file} is written; try it with: headgate serve --config ${file} --demo\n`,
      err: '',
    })
    expect((await runInProcess(['rules', 'validate', file])).out).toContain(
      'is sound: 5 tiers, 1 policy, 1 rule',
    )
    const explained = await runInProcess(['rules', 'explain', 'POST', '/login', '--config', file])
    expect(explained.out).toContain('route: rule login, policy login: decides')

    writeFileSync(file, 'mine')
    expect(await runInProcess(['init', file])).toEqual({
      code: 2,
      out: '',
      err: `headgate: ${file}: expected no such file; got one, which --force would replace\n`,
    })
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect(await runInProcess(['init', file, '--force', '--json'])).toMatchObject({
      code: 0,
      out: `${JSON.stringify({ file })}\n`,
    })
    expect(readFileSync(file, 'utf8')).toContain('tiers: default')
  })

  it('the file of init is also sound with every example switched on', async () => {
    const { out } = await runInProcess(['init', '--stdout'])
    const switchedOn = out.replace(/^# (?!yaml-language)/gm, '')
    const config = await parseConfig(switchedOn, 'headgate.yaml')
    expect(config.rules.map(({ name }) => name)).toEqual(['login', 'uploads'])
    expect(config).toMatchObject({
      mode: 'shadow',
      tenant: 'shop',
      upstream: { urls: ['http://127.0.0.1:3000'] },
    })
  })

  it('init says where no file can be', async () => {
    const { code, err } = await runInProcess(['init', join(folder, 'no', 'such', 'folder.yaml')])
    expect(code).toBe(2)
    expect(err).toContain('folder.yaml: expected a place for a file; got ENOENT')
  })
})
