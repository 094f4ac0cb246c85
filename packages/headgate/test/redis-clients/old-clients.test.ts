import { createClient, createCluster } from 'redis'
import { expect, it } from 'vitest'
import { redisStore } from '../../src/redis.ts'

/** As in node-redis 4: the options are in a private member, which a stand-in for the client does not have. */
class OldClient {
  readonly #options: object = { url: 'redis://:a-password@localhost' }

  async evalSha(): Promise<unknown> {
    return null
  }

  async fCall(): Promise<unknown> {
    return null
  }

  duplicate(): OldClient {
    return this.#options === undefined ? this : new OldClient()
  }
}

it.each([false, true])(
  'a client of node-redis 4 is rejected with a sentence that says what is supported',
  shared => {
    const open = () => redisStore(new OldClient(), { shared, onWarning: () => {} })
    expect(open).toThrow(
      expect.objectContaining({
        code: 'ERR_HEADGATE_INVALID_OPTION',
        field: 'client',
        message:
          'client: expected a client of node-redis 5 or later, of ioredis or of Upstash; got "node-redis 4"',
      }),
    )
  },
)

it('later clients of node-redis are not taken for it', async () => {
  const url = 'redis://127.0.0.1:1'
  const quiet = { info() {}, warn() {}, error() {} }
  for (const client of [createClient({ url }), createCluster({ rootNodes: [{ url }] })])
    await redisStore(client, { logger: quiet }).close()
})
