import { expect, it } from 'vitest'
import { createHeartbeat } from './heartbeat.js'

/** Creates a node with `all` processes, of which three are ours. */
function beating(service: string, all: number) {
  const counted: string[] = []
  let nowUs = 0
  const heartbeat = createHeartbeat({
    ...{ prefix: 'ratelimit', service, member: () => 'me', nodeOf: () => '' },
    async run(_key, [member, , , asked]) {
      expect(member).toBe(service === '' ? 'me' : `${service}/me`)
      counted.push(asked as string)
      const before = nowUs === 0 ? '' : String(nowUs)
      nowUs += 1_000_000
      return asked === '' ? [all, String(nowUs), before, all, all] : [3, String(nowUs), before, 3, all]
    },
  })
  return { heartbeat, counted }
}

it('a heartbeat lets Redis look for the processes of a service the less often, the more there are', async () => {
  for (const [all, looks] of [
    [50, 20],
    [500, 3],
  ] as const) {
    const { heartbeat, counted } = beating('api', all)
    for (let beat = 0; beat < 20; beat++) {
      expect(await heartbeat()).toEqual({ live: 3, recent: 3, lostWrites: 0 })
    }
    expect(counted.filter(asked => asked === 'api')).toHaveLength(looks)
  }
})

it('a heartbeat counts everybody where no service is named', async () => {
  const { heartbeat } = beating('', 1_000)
  expect(await heartbeat()).toEqual({ live: 1_000, recent: 1_000, lostWrites: 0 })
})
