// One real Postgres and one real Kafka serve the whole run; a failing test is never retried.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  // 'aftercommit' is the source: the examples import it by that name.
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
    globalSetup: ['test/support/run/global-setup.ts'],
    setupFiles: ['test/support/run/worker-lifetime.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // By default an outbox writes what goes wrong to the console, and most tests make something go wrong.
    silent: 'passed-only',
    env: { KAFKAJS_NO_PARTITIONER_WARNING: '1' },
  },
})
