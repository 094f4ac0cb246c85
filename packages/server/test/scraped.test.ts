/**
 * A real Prometheus scrapes a real server; every panel of the Grafana dashboard and every alert rule is queried.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { findFreePort } from '../../headgate/test/support/free-port.ts'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { systemProgram } from '../../headgate/test/support/system-program.ts'
import { type HeadgateProcess, serveHeadgate } from './support/headgate-process.js'

const RULES = fileURLToPath(new URL('../../../deploy/prometheus/headgate.rules.yml', import.meta.url))
const DASHBOARD = new URL('../../../deploy/grafana/headgate.json', import.meta.url)

interface Panel {
  readonly title: string
  readonly targets: readonly { readonly expr: string }[]
}
const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as { panels: Panel[] }

let redis: RedisProcess
let headgate: HeadgateProcess
let prometheus: ChildProcess
let url = ''
const folder = mkdtempSync(join(tmpdir(), 'headgate-prometheus-'))

beforeAll(async () => {
  redis = await startRedis()
  headgate = await serveHeadgate('--demo', '--redis', `redis://127.0.0.1:${redis.port}`)
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [RULES],
    scrape_configs: [
      { job_name: 'headgate', static_configs: [{ targets: [new URL(headgate.adminUrl).host] }] },
    ],
  }
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const port = await findFreePort()
  url = `http://127.0.0.1:${port}`
  const args = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`]
  prometheus = spawn(await systemProgram('prometheus'), [...args, `--web.listen-address=127.0.0.1:${port}`], {
    stdio: 'ignore',
  })
  await vi.waitFor(async () => expect((await fetch(`${url}/-/ready`)).status).toBe(200), 20_000)
}, 120_000)

afterAll(async () => {
  prometheus?.kill('SIGKILL')
  await headgate?.end('SIGTERM')
  await redis?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function ask(query: string): Promise<readonly { readonly value: readonly [number, string] }[]> {
  const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(query)}`)
  const body = (await response.json()) as { status: string; error?: string; data: { result: [] } }
  if (body.status !== 'success') throw new Error(`${query}: ${body.error}`)
  return body.data.result
}

describe('a scraped server', () => {
  it('a scraped server counts what passed and what did not, and every panel has data', {
    timeout: 60_000,
  }, async () => {
    const scraped = () =>
      vi.waitFor(async () => expect(await ask('rate_limit_decisions_total')).not.toEqual([]), 20_000)
    const send = async () => {
      for (let index = 0; index < 15; index++) await (await fetch(headgate.gatewayUrl)).text()
    }
    await send()
    await scraped()
    await send()
    await vi.waitFor(async () => {
      const [allowed] = await ask('sum(rate_limit_allowed_total)')
      const [denied] = await ask('sum(rate_limit_blocked_total)')
      expect(Number(allowed?.value[1]) + Number(denied?.value[1])).toBe(30)
      expect(Number(denied?.value[1])).toBeGreaterThan(0)
    }, 20_000)
    for (const { title, targets } of panels) {
      for (const { expr } of targets) {
        const query = expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$(?:job|instance)/g, '.*')
        expect(await ask(query), `${title}: ${query}`).not.toEqual([])
      }
    }
  })

  it('the alert rules are sound, fire when they should, and are quiet', async () => {
    const { stdout } = await promisify(execFile)(await systemProgram('promtool'), ['check', 'rules', RULES])
    expect(stdout).toContain('SUCCESS: 9 rules found')
    const unit = RULES.replace('.rules.yml', '.rules.test.yml')
    const tested = await promisify(execFile)(await systemProgram('promtool'), ['test', 'rules', unit])
    expect(tested.stdout).toContain('SUCCESS')
    const response = await fetch(`${url}/api/v1/rules`)
    const { data } = (await response.json()) as {
      data: { groups: { rules: { name: string; health: string }[] }[] }
    }
    const rules = data.groups.flatMap(group => group.rules)
    expect(rules.map(({ name }) => name).sort()).toEqual([
      'HeadgateConfigStale',
      'HeadgateDenialRate',
      'HeadgateDisabled',
      'HeadgateDown',
      'HeadgateLatency',
      'HeadgateSpike',
      'HeadgateStoreDown',
      'HeadgateUpstreamErrors',
      'HeadgateUpstreamOverloaded',
    ])
    expect(rules.filter(({ health }) => health === 'err')).toEqual([])
  })
})
