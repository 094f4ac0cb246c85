import assert from 'node:assert/strict'
import { it } from 'node:test'
import { memoryStore } from 'headgate'
import { faultyStore, guardedStore } from 'headgate/testing'
import { createApp } from './app.js'

it('pages are served and logins rejected while the store is frozen', async t => {
  const faulty = faultyStore(memoryStore())
  // The guards that redisStore has. With a real Redis: faultyStore(redisStore(client, { onStoreFailure: 'throw' })).
  const store = guardedStore(faulty, { probeAfterMs: 20, logger: { info() {}, warn() {}, error() {} } })
  const app = createApp(store)
  t.after(() => app.close())
  const get = async (path: string) => {
    const response = await app.fetch(new Request(`http://localhost${path}`))
    return [response.status, response.status === 200 ? await response.text() : '']
  }

  assert.deepEqual(await get('/'), [200, 'decided by memory\n'])

  faulty.faults.always({ type: 'hang' })
  assert.deepEqual(await get('/'), [200, 'decided by local\n'])
  assert.deepEqual(await get('/login'), [503, ''])
  for (let time = 0; time < 3; time++) await get('/')
  assert.deepEqual(store.health().breakers, { '': 'open' })
  assert.ok((faulty.faults.injected().hang ?? 0) >= 5)

  faulty.faults.stop()
  while (Object.keys(store.health().breakers).length > 0) await new Promise(done => setTimeout(done, 5))
  assert.deepEqual(await get('/login'), [200, 'decided by memory\n'])
})
