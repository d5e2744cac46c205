// How an instance describes itself to others, in its row.
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import type { ResolvedOptions } from '../options/options.ts'
import type { OwnInstance } from '../store/outbox/control-store.ts'
import { sharedSettings, shownSettings } from './shared-settings.ts'

export function describeInstance(options: ResolvedOptions): Omit<OwnInstance, 'upMs' | 'report'> {
  const { destinations, immediate, poller, workerId, thresholdMs } = options
  return {
    id: randomUUID(),
    workerId,
    host: hostname(),
    pid: process.pid,
    version: libraryVersion(),
    publishers: destinations.map(({ name, topics }) => ({ name, topics: topics.only })),
    immediate,
    poller,
    settings: { ...sharedSettings(options), threshold: thresholdMs, ...shownSettings(options) },
  }
}

// The package resolves itself by name. A bundle may not find it, which must not keep the outbox from starting.
function libraryVersion(): string {
  try {
    const { version } = createRequire(import.meta.url)('aftercommit/package.json') as {
      version: string
    }
    return version
  } catch {
    return 'unknown'
  }
}
