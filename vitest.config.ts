import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const inHeadgate = (...names: string[]) => names.map(name => `packages/headgate/test/${name}.test.ts`)

/** Tests that hold milliseconds while servers are frozen and killed. They come last, two files at a time: they need the machine. */
const TIMED = [
  ...inHeadgate('guard/closing', 'guard/fleet', 'guard/own-load', 'guard/shares', 'outbound'),
  ...inHeadgate('concurrency/next-in-line'),
  ...inHeadgate('faults/demoted', 'faults/half-open-node', 'faults/report', 'redis-clients/failover'),
  'packages/server/test/faults/*.test.ts',
]

export default defineConfig({
  test: {
    // How long what never comes is waited for: beside a busy neighbour all that comes takes longer.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'behaviour',
          include: ['packages/*/{src,test}/**/*.test.ts', 'bench/src/**/*.test.js'],
          exclude: TIMED,
          // Half of them wait for servers, browsers and faults most of the time, so two for each core keep it busy.
          maxWorkers: 2 * availableParallelism(),
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'timed-faults',
          include: TIMED,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
