// Waits until an outbox has sent everything that it can send now, so that a test can say "nothing was published" without a
// wait. What cannot be sent now does not count: paused topics, events that rest after a failure, a publisher that is away.
import { type Duration, formatDuration, toMilliseconds } from '../checks/duration.ts'
import { rejectUnknown } from '../checks/checks.ts'
import type { FlushResult } from '../delivery/flush.ts'
import { PublishError } from '../errors.ts'
import type { Outbox } from '../outbox.ts'

export interface TestDrainOptions {
  /** When drain() rejects, because a send has not settled. @default '10s' */
  timeout?: Duration
}

type Drained = Pick<Outbox<never, never>, 'flush' | 'drain'>

/**
 * Sends everything that is committed and can be sent now, with or without start(). Rejects with PUBLISH_TIMEOUT if a send does
 * not settle in time, so that a test never passes because it did not wait.
 */
export async function drain(outbox: Drained, options: TestDrainOptions = {}): Promise<void> {
  rejectUnknown('drain()', options, ['timeout'])
  const { timeout = '10s' } = options
  // First what this process committed: that includes what a started outbox is sending right now.
  const { left } = await outbox.flush({ timeout })
  const { timedOut } = await outbox.drain({ timeout })
  const open = left.filter(({ reason }) => reason === 'sending' || reason === 'timeout')
  if (!timedOut && open.length === 0) return
  const took = formatDuration(toMilliseconds('timeout', timeout))
  throw new PublishError(
    'PUBLISH_TIMEOUT',
    `drain() took longer than ${took}; ${describe(open)}; end what the publisher or the database waits for, or raise timeout`,
  )
}

function describe(open: FlushResult['left']): string {
  if (open.length === 0) return 'there is more to send'
  const events = open.map(({ event, reason }) => `${event.type} ${event.id} (${reason})`)
  return `without an outcome: ${events.join(', ')}`
}
