/** Shows how the store is doing, who shares it, and which policy file holds. */
import type { ComponentChildren } from 'preact'
import type { Snapshot } from './answers.js'
import { bytes, duration, instant, milliseconds, number, percent } from './format.js'

export function StorePanel({ snapshot }: { snapshot: Snapshot }) {
  const { store, processes, config, overrides } = snapshot
  return (
    <section class="panel" aria-labelledby="store-title">
      <h3 id="store-title">Store and fleet</h3>
      <dl class="pairs">
        {store.kind === 'redis' ? (
          <RedisPairs store={store} />
        ) : (
          <Pair name="Limits are kept in">this process, for {duration(Date.now() - store.sinceMs)}</Pair>
        )}
        {processes.services.map(({ service, live }) => (
          <Pair key={service} name={service === '' ? 'Processes' : `Processes of ${service}`}>
            {number(live)}
          </Pair>
        ))}
        <Pair name="Policy file" isBad={config.state === 'stale'}>
          <code>{config.version}</code> since {instant(config.loadedAtMs)}
          {config.state === 'stale' && '; it has changed into one that cannot be used'}
        </Pair>
        <Pair name="Overrides">{number(overrides)}</Pair>
      </dl>
    </section>
  )
}

function RedisPairs({ store }: { store: Snapshot['store'] }) {
  const { redis, budget, breakers, latencyMs, callsPerSecond, callCapPerSecond, errorsPerSecond } = store
  const isUp = store.state === 'up'
  return (
    <>
      <Pair name="Redis" isBad={!isUp}>
        {isUp ? 'answers' : 'does not answer'} since {instant(store.sinceMs)}
      </Pair>
      {breakers.map(({ node, state, sinceMs }) => (
        <Pair key={node} name={node === '' ? 'Breaker' : `Breaker of ${node}`} isBad={state !== 'closed'}>
          {state} since {instant(sinceMs)}
        </Pair>
      ))}
      <Pair name="Calls answered">{percent(store.availability, 2)}</Pair>
      <Pair name="Calls/s" isBad={errorsPerSecond > 0}>
        {number(callsPerSecond)}
        {callCapPerSecond !== null && ` of ${number(callCapPerSecond)} at most`}
        {errorsPerSecond > 0 && `, ${number(errorsPerSecond)} failed`}
      </Pair>
      <Pair name="Latency p50">{milliseconds(latencyMs.p50)}</Pair>
      <Pair name="Latency p99">{milliseconds(latencyMs.p99)}</Pair>
      {redis !== null && (
        <>
          <Pair name="Memory" isBad={isBeyond(redis.usedMemoryBytes, budget.memoryBytes)}>
            {bytes(redis.usedMemoryBytes)}
            {redis.maxMemoryBytes !== null && ` of ${bytes(redis.maxMemoryBytes)}`}
            {budget.memoryBytes !== null && `, budget ${bytes(budget.memoryBytes)}`}
          </Pair>
          <Pair name="Operations/s" isBad={isBeyond(redis.opsPerSecond, budget.opsPerSecond)}>
            {number(redis.opsPerSecond)}
            {budget.opsPerSecond !== null && `, budget ${number(budget.opsPerSecond)}`}
          </Pair>
          {redis.evictionPolicyUnsafe && (
            <Pair name="Eviction" isBad>
              may remove limits; set maxmemory-policy to noeviction
            </Pair>
          )}
        </>
      )}
    </>
  )
}

function isBeyond(value: number, budget: number | null): boolean {
  return budget !== null && value > budget
}

interface PairProps {
  readonly name: string
  readonly isBad?: boolean
  readonly children: ComponentChildren
}

function Pair({ name, isBad = false, children }: PairProps) {
  return (
    <>
      <dt>{name}</dt>
      <dd class={isBad ? 'bad' : undefined}>{children}</dd>
    </>
  )
}
