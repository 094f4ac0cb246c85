import { defineConfig } from 'vitest/config'

const inHeadgate = (...names: string[]) => names.map(name => `packages/headgate/test/${name}.test.ts`)

/** Tests that hold milliseconds while servers are frozen and killed, one file at a time: they need the machine. */
const TIMED = [
  ...inHeadgate('guard/closing', 'guard/fleet', 'guard/own-load', 'guard/shares', 'outbound'),
  ...inHeadgate('concurrency/next-in-line'),
  ...inHeadgate('faults/demoted', 'faults/half-open-node', 'faults/report', 'redis-clients/failover'),
  'packages/server/test/faults/*.test.ts',
]

/** Tests that freeze, kill and cut off real servers, and mostly wait for what comes of it: two files at a time. */
const FAULTS = inHeadgate(
  'redis-clients/*',
  'guard/*',
  'faults/*',
  'rules/rules-redis',
  'rules/shadow-never-denies',
)

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'logic',
          include: ['packages/*/{src,test}/**/*.test.ts', 'bench/src/**/*.test.js'],
          exclude: [...FAULTS, ...TIMED],
          // By default one core is left idle, which is half of a small machine.
          maxWorkers: '100%',
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'faults',
          include: FAULTS,
          exclude: TIMED,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'timed-faults',
          include: TIMED,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
