import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { startShiftedRedis } from './clock-shim.ts'
import { startCluster } from './redis-cluster.ts'
import { type RedisProcess, startRedis } from './redis-process.ts'
import { startSentinel } from './redis-sentinel.ts'
import { openConnection, sendCommand } from './resp.ts'
import { waitUntil } from './wait-until.ts'

const toStop: { stop(): Promise<void> }[] = []

function later<T extends { stop(): Promise<void> }>(started: T): T {
  toStop.push(started)
  return started
}

afterEach(async () => {
  await Promise.all(toStop.splice(0).map(started => started.stop()))
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function expectGone(servers: readonly RedisProcess[]): void {
  expect(servers.filter(({ pid, dir }) => isRunning(pid) || existsSync(dir))).toEqual([])
}

describe('a single Redis', () => {
  it('a Redis answers every kind of reply, in the order of the commands', async () => {
    const { port } = later(await startRedis())
    const connection = await openConnection(port)
    const replies = await Promise.all([
      connection.send('SET', 'å', 'line\r\nbreak'),
      connection.send('GET', 'å'),
      connection.send('GET', 'missing'),
      connection.send('INCRBY', 'n', -3),
      connection.send('LPUSH', 'n', 'x'),
      connection.send('EVAL', "return {1, 'two', {}, {false}}", 0),
      connection.send('ECHO', 'x'.repeat(1_000_000)),
    ])
    connection.close()
    expect(replies.slice(0, 4)).toEqual(['OK', 'line\r\nbreak', null, -3])
    expect(replies[4]).toBeInstanceOf(Error)
    expect(String(replies[4])).toContain('WRONGTYPE')
    expect(replies[5]).toEqual([1, 'two', [], [null]])
    expect(replies[6]).toHaveLength(1_000_000)
    await expect(connection.send('PING')).rejects.toThrow('closed')
  })

  it('a Redis allows DEBUG and keeps nothing on disk', async () => {
    const { port } = later(await startRedis())
    expect(await sendCommand(port, 'DEBUG', 'SLEEP', '0')).toBe('OK')
    expect(await sendCommand(port, 'CONFIG', 'GET', 'save')).toEqual(['save', ''])
  })

  it('a Redis stops even when frozen, and may be stopped again', async () => {
    const redis = await startRedis()
    redis.kill('SIGSTOP')
    await Promise.all([redis.stop(), redis.stop()])
    await redis.stop()
    expectGone([redis])
  })

  it('a Redis comes back on the same port after it was killed', async () => {
    const first = later(await startRedis())
    first.kill('SIGKILL')
    await first.exited
    const second = later(await startRedis({ port: first.port }))
    expect(await sendCommand(second.port, 'PING')).toBe('PONG')
  })

  it('a Redis rejects a port in use, and shows its output', async () => {
    const { port, pid } = later(await startRedis())
    await expect(startRedis({ port })).rejects.toThrow('Address already in use')
    expect(isRunning(pid)).toBe(true)
  })

  it('a Redis with an unknown setting shows its output', async () => {
    await expect(startRedis({ args: ['--no-such-setting', '1'] })).rejects.toThrow('no-such-setting')
  })
})

it('a cluster serves every slot from three primaries, each with a replica in sync', async () => {
  const cluster = later(await startCluster({ primaries: 3, replicasPerPrimary: 1, nodeTimeoutMs: 2000 }))
  expect(cluster.nodes.map(node => node.role)).toEqual([
    'primary',
    'primary',
    'primary',
    'replica',
    'replica',
    'replica',
  ])
  for (const [index, primary] of cluster.primaries.entries()) {
    const key = await keyInSlots(primary.port, primary.slots)
    expect(await sendCommand(primary.port, 'SET', key, 'here')).toBe('OK')
    expect(await sendCommand(primary.port, 'WAIT', 1, 1000)).toBe(1)
    expect(await sendCommand(cluster.replicas[index]?.port ?? 0, 'KEYS', '*')).toEqual([key])
  }
  await cluster.stop()
  expectGone(cluster.nodes)
})

async function keyInSlots(port: number, [first, last]: readonly [number, number]): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const slot = Number(await sendCommand(port, 'CLUSTER', 'KEYSLOT', `key-${attempt}`))
    if (slot >= first && slot <= last) return `key-${attempt}`
  }
}

it('sentinels promote the replica when the primary dies', async () => {
  const setup = later(await startSentinel({ replicas: 1, sentinels: 3, downAfterMs: 1000 }))
  const promised = setup.replicas[0]?.port
  await sendCommand(setup.primary.port, 'SET', 'kept', 'yes')
  expect(await sendCommand(setup.primary.port, 'WAIT', 1, 1000)).toBe(1)

  const primaryAccordingTo = async (port: number) => {
    const address = await sendCommand(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', setup.masterName)
    return Array.isArray(address) ? Number(address[1]) : undefined
  }
  for (const { port } of setup.sentinels) expect(await primaryAccordingTo(port)).toBe(setup.primary.port)

  setup.primary.kill('SIGKILL')
  for (const { port } of setup.sentinels) {
    await waitUntil('failover', async () => (await primaryAccordingTo(port)) === promised)
  }
  expect(await sendCommand(promised ?? 0, 'GET', 'kept')).toBe('yes')

  await setup.stop()
  expectGone([setup.primary, ...setup.replicas, ...setup.sentinelProcesses])
})

describe('a Redis with a movable clock', () => {
  const hourUs = 3_600_000_000

  /** Returns how far the server's clock is from ours, in seconds, asked directly and inside a script. */
  async function readShiftSeconds(port: number): Promise<number[]> {
    const direct = await sendCommand(port, 'TIME')
    const scripted = await sendCommand(port, 'EVAL', "return redis.call('TIME')", 0)
    return [direct, scripted].map(reply => {
      const [seconds, micros] = Array.isArray(reply) ? reply.map(Number) : []
      return (seconds ?? 0) + (micros ?? 0) / 1e6 - Date.now() / 1000
    })
  }

  it('a movable clock shifts TIME at once, forwards and backwards, also inside scripts', async () => {
    const redis = later(await startShiftedRedis())
    for (const offsetUs of [0, hourUs, -hourUs, -60_000_000, 1_500_000 + hourUs, 0]) {
      redis.shiftClock(offsetUs)
      for (const shift of await readShiftSeconds(redis.port)) {
        expect(Math.abs(shift - offsetUs / 1e6)).toBeLessThan(0.25)
      }
    }
  })

  it('a movable clock keeps timers running after a jump, and lets a jump forward expire keys', async () => {
    const redis = later(await startShiftedRedis())
    const { port } = redis
    redis.shiftClock(-hourUs)
    await sendCommand(port, 'SET', 'short', '1', 'PX', 150)
    const startedAt = performance.now()
    expect(await sendCommand(port, 'BLPOP', 'nothing', '0.2')).toBeNull()
    expect(performance.now() - startedAt).toBeLessThan(2000)
    await sleep(100)
    expect(await sendCommand(port, 'GET', 'short')).toBeNull()

    await sendCommand(port, 'SET', 'long', '1', 'PX', 60_000)
    redis.shiftClock(-hourUs + 61_000_000)
    expect(await sendCommand(port, 'GET', 'long')).toBeNull()
    await redis.stop()
    expectGone([redis])
  })
})
