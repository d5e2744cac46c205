// Waits until an outbox has sent everything that it can send now, so that a test can say "nothing was published" without a
// wait. What cannot be sent now does not count: paused topics, events that rest after a failure, a publisher in an outage.
import { performance } from 'node:perf_hooks'
import { type Duration, formatDuration, toMilliseconds } from '../checks/duration.ts'
import { rejectUnknown } from '../checks/checks.ts'
import type { FlushResult } from '../delivery/flush.ts'
import { OutboxOptionsError, PublishError } from '../errors.ts'
import type { Outbox } from '../outbox.ts'
import { partsOf } from '../upkeep/own-parts.ts'

export interface TestDrainOptions {
  /** When drain() rejects, because a send has not settled, or because handlers emit without an end. @default '10s' */
  timeout?: Duration
}

type Drained = Pick<Outbox<never, never>, 'flush' | 'drain'>

/**
 * Sends everything that is committed and can be sent now, with or without start(). Rejects with PUBLISH_TIMEOUT if a send does
 * not settle in time, so that a test never passes because it did not wait, and with OPTIONS_INVALID if the outbox sends nothing at all
 * (`enabled: false`, `relay: 'cdc'`).
 */
export async function drain(outbox: Drained, options: TestDrainOptions = {}): Promise<void> {
  rejectUnknown('drain()', options, ['timeout'])
  refuseSilent(outbox)
  const timeoutMs = toMilliseconds('timeout', options.timeout ?? '10s')
  const until = performance.now() + timeoutMs
  const rest = () => ({ timeout: Math.max(0, until - performance.now()) })
  for (;;) {
    // First what this process committed: that includes what a started outbox is sending right now.
    const flushed = await outbox.flush(rest())
    const drained = await outbox.drain(rest())
    const open = flushed.left.filter(({ reason }) => reason === 'sending' || reason === 'timeout')
    if (drained.timedOut || open.length > 0) throw tookTooLong(timeoutMs, open)
    // A handler may have emitted more.
    if (flushed.delivered.length === 0 && drained.delivered === 0) return
  }
}

/** A test of what was not published would pass on an outbox that publishes nothing. */
function refuseSilent(outbox: Drained): void {
  const { enabled, relay } = partsOf(outbox)?.options ?? { enabled: true, relay: 'outbox' }
  if (!enabled) {
    throw new OutboxOptionsError(
      'drain() takes an outbox that sends, and this one has enabled: false; create it with enabled: true in the test',
    )
  }
  if (relay === 'cdc') {
    throw new OutboxOptionsError(
      "drain() takes an outbox that sends, and with relay: 'cdc' a connector does; create it with relay: 'outbox' and a recordingPublisher() in the test",
    )
  }
}

function tookTooLong(timeoutMs: number, open: FlushResult['left']): PublishError {
  return new PublishError(
    'PUBLISH_TIMEOUT',
    `drain() took longer than ${formatDuration(timeoutMs)}; ${describe(open)}; end what the publisher or the database waits for, or raise timeout`,
  )
}

function describe(open: FlushResult['left']): string {
  if (open.length === 0) return 'there is more to send'
  const events = open.map(({ event, reason }) => `${event.type} ${event.id} (${reason})`)
  return `without an outcome: ${events.join(', ')}`
}
