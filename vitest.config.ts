import { defineConfig } from 'vitest/config'

/** Tests that freeze, kill and cut off real servers, one file at a time: what they wait for needs the machine. */
const FAULTS = [
  ...['redis-clients/**', 'guard/**', 'faults/**', 'gate/gate-redis', 'outbound'].map(
    place => `packages/headgate/test/${place.endsWith('**') ? `${place}/*` : place}.test.ts`,
  ),
  'packages/server/test/faults/*.test.ts',
]

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
          exclude: FAULTS,
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
          // Once more where a busy machine was later than the fault allows; what is wrong fails twice.
          retry: 1,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
