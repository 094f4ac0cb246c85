import { bytes, duration, milliseconds, number, percent } from './format.js'
import type { Snapshot, StoreFigures } from './snapshot.js'

/** How the store is doing, and who shares it. */
export function StorePanel({ snapshot: { store, processes, config, overrides } }: { snapshot: Snapshot }) {
  const isUp = store.state === 'up'
  return (
    <section class="panel" aria-labelledby="store-title">
      <h3 id="store-title">Store</h3>
      <dl class="pairs">
        <dt>{store.kind === 'redis' ? 'Redis' : 'In this process'}</dt>
        <dd class={isUp ? 'good' : 'bad'}>
          {isUp ? 'answers' : 'does not answer'} since {duration(Date.now() - store.sinceMs)}
        </dd>
        <RedisFigures store={store} />
        {processes !== undefined && (
          <>
            <dt>Processes</dt>
            <dd>{number(processes.live)}</dd>
          </>
        )}
        <dt>Policy file</dt>
        <dd class={config.state === 'stale' ? 'bad' : undefined}>
          {config.version}
          {config.state === 'stale' && ', and a newer one that cannot be used'}
        </dd>
        <dt>Overrides</dt>
        <dd>{number(overrides)}</dd>
      </dl>
    </section>
  )
}

function RedisFigures({ store }: { store: StoreFigures }) {
  if (store.kind !== 'redis') return null
  const { redis = null, breakers, availability, latencyMs, callsPerSecond, errorsPerSecond } = store
  return (
    <>
      {breakers.map(({ node, state, sinceMs }) => (
        <>
          <dt>{node}</dt>
          <dd class={state === 'closed' ? undefined : 'bad'}>
            breaker {state} since {duration(Date.now() - sinceMs)}
          </dd>
        </>
      ))}
      <dt>Calls answered</dt>
      <dd>{percent(availability, 2)}</dd>
      <dt>Calls a second</dt>
      <dd>
        {number(callsPerSecond)}
        {errorsPerSecond > 0 && `, ${number(errorsPerSecond)} failed`}
      </dd>
      <dt>Latency, median and 99 of 100</dt>
      <dd>
        {milliseconds(latencyMs.p50)}, {milliseconds(latencyMs.p99)}
      </dd>
      {redis !== null && (
        <>
          <dt>Memory</dt>
          <dd>
            {bytes(redis.usedMemoryBytes)}
            {redis.maxMemoryBytes !== null &&
              redis.maxMemoryBytes > 0 &&
              ` of ${bytes(redis.maxMemoryBytes)}`}
          </dd>
          <dt>Operations a second</dt>
          <dd>{number(redis.opsPerSecond)}</dd>
          {redis.evictionPolicyUnsafe && (
            <>
              <dt>Eviction</dt>
              <dd class="bad">may remove limits; set maxmemory-policy to noeviction</dd>
            </>
          )}
        </>
      )}
    </>
  )
}
