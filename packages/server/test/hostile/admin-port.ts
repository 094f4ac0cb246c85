/** Callers of the admin port who guess tokens, or have one and take all they can get. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Attack, AttackGroup } from './attack.js'
import { inParallel } from './in-parallel.js'
import { type Target, underAttack } from './target.js'

const BEHIND_PROXY =
  'policies:\n  api: { algorithm: sliding-window-counter, limit: 4000000000, window: 1m }\ndefault: { policy: api }\ntrustedProxies: [127.0.0.1]\n'
const AT_ONCE = 16
const SECRETS = {
  check: 'the-token-of-a-proxy',
  read: 'the-token-of-a-screen',
  administer: 'the-token-of-an-operator',
}
type Role = keyof typeof SECRETS

async function attacked(attack: (target: Target) => Promise<string>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-hostile-admin-'))
  const tokens = (Object.keys(SECRETS) as Role[]).map(role => {
    writeFileSync(join(folder, role), SECRETS[role])
    return `its-${role}:${role}:file:${join(folder, role)}`
  })
  try {
    return await underAttack({ config: BEHIND_PROXY, args: ['--admin-token', ...tokens] }, attack)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const bearer = (secret: string) => ({ Authorization: `Bearer ${secret}` })

/** Sends what somebody with the right token sends, through the same proxy as everybody, and expects 200. */
async function expectIn({ adminUrl }: Target, from: string): Promise<void> {
  const via = { 'X-Forwarded-For': from }
  const asked = await fetch(`${adminUrl}/v1/forward-auth`, {
    headers: {
      ...via,
      'Headgate-Token': SECRETS.check,
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Uri': '/',
    },
  })
  const changed = await fetch(`${adminUrl}/v1/control`, {
    method: 'PATCH',
    headers: { ...via, ...bearer(SECRETS.administer), 'Content-Type': 'application/json' },
    body: '{"multiplier":1}',
  })
  for (const { url, status } of [asked, changed]) {
    if (status !== 200) throw new Error(`the right token got ${status} at ${new URL(url).pathname}`)
  }
}

const wrongTokens: Attack = {
  name: 'wrong tokens',
  does: 'sends wrong tokens through the proxy that everybody comes through, from one address and from hundreds',
  expected:
    'right tokens always pass; 401 for 20 a minute of an address and 1,000 in all, then 429 with Retry-After',
  inShort: true,
  run: ({ isShort }) =>
    attacked(async target => {
      const { adminUrl } = target
      const began = performance.now()
      const counts = new Map<number, number>()
      const guess = async (from: string, index: number) => {
        const headers = { 'X-Forwarded-For': from, ...bearer(`guess-number-${index}`) }
        const relayed = { 'X-Forwarded-For': from, 'Headgate-Token': `guess-number-${index}` }
        const isRelay = index % 2 === 0
        const path = isRelay ? '/v1/forward-auth' : '/v1/control'
        const answer = await fetch(`${adminUrl}${path}`, { headers: isRelay ? relayed : headers })
        await answer.arrayBuffer()
        counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1)
        if (answer.status === 429 && !(Number(answer.headers.get('retry-after')) >= 1)) {
          throw new Error('429 without Retry-After')
        }
        if (index % 100 === 0) await expectIn(target, from)
      }
      await inParallel(100, AT_ONCE, index => guess('203.0.113.1', index))
      if (counts.get(401) !== 20) throw new Error(`one address: ${counts.get(401)} × 401`)
      await inParallel(isShort ? 1_200 : 20_000, AT_ONCE, index =>
        guess(`198.51.${(index >> 8) & 255}.${index & 255}`, index),
      )
      const most = 1_000 * Math.ceil((performance.now() - began) / 60_000)
      const told = counts.get(401) ?? 0
      if (told > most || told < 900) throw new Error(`${told} × 401 in all`)
      await expectIn(target, '203.0.113.1')
      return `${[...counts].map(([status, count]) => `${count} × ${status}`).join(', ')}; every right token passed`
    }),
}

const greedyStreams: Attack = {
  name: 'greedy event streams',
  does: 'opens 300 event streams with one read token',
  expected: 'at most 25 are open, and the administrator still gets a stream and changes a limit',
  inShort: true,
  run: () =>
    attacked(async target => {
      const closer = new AbortController()
      // fetch cancels the body of a response that was collected as garbage, and the stream's permit would be free again.
      const held: Response[] = []
      const open = async (role: Role) => {
        const headers = bearer(SECRETS[role])
        const answer = await fetch(`${target.adminUrl}/v1/stats/stream`, { headers, signal: closer.signal })
        held.push(answer)
        return answer.status
      }
      try {
        await inParallel(300, 100, async () => void (await open('read')))
        const got = held.filter(({ status }) => status === 200).length
        if (got !== 25) throw new Error(`${got} streams of one token`)
        const own = await open('administer')
        if (own !== 200) throw new Error(`the administrator's stream got ${own}`)
        await expectIn(target, '203.0.113.1')
        return `${got} of 300 opened; the administrator's, too`
      } finally {
        closer.abort()
        held.length = 0
      }
    }),
}

export const adminPort: AttackGroup = { title: 'Admin port', attacks: [wrongTokens, greedyStreams] }
