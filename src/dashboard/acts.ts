// What a person can change from the page, for a mounted dashboard and `aftercommit dashboard` alike. The statements wait for a
// lock no longer than a person would, and take as long as they have to once they have it.
import type { Pauses } from '../delivery/pauses.ts'
import type { Executor } from '../drivers/driver.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import type { DoneBy } from '../upkeep/done-by.ts'
import { FailureDesk, type Failures } from '../upkeep/failures.ts'
import { type PauseDetails, PauseDesk } from '../upkeep/pause-desk.ts'
import { reroute, type RerouteResult } from '../upkeep/reroute.ts'
import { outboxRound, Retention as Purges } from '../upkeep/retention.ts'

export interface Retention {
  readonly retentionMs: number
  readonly deadLetterRetentionMs: number | null
}

export interface ActParts {
  /** null: not known here, so nothing is purged. */
  readonly retention: Retention | null
  readonly logger: Logger
  /** Rung when events may be sent. */
  readonly bell: Bell
  /** What this process obeys. */
  readonly pauses: Pick<Pauses, 'learn'>
}

export interface Acts {
  readonly failures: Pick<Failures, 'retry' | 'discard'>
  pause(topic: string | null, details: PauseDetails): Promise<boolean>
  resume(topic: string | null, details: DoneBy): Promise<boolean>
  reroute(from: string, to: string, details: DoneBy): Promise<RerouteResult>
  purge(retention: Retention, details: DoneBy): Promise<number>
}

export function actsOf(store: Store<Executor>, { logger, bell, pauses }: ActParts): Acts {
  const desk = { store, logger, bell }
  const pauseDesk = new PauseDesk({ control: store.control, pauses, logger })
  return {
    failures: new FailureDesk(desk),
    pause: (topic, details) => pauseDesk.pause(topic, details),
    resume: (topic, details) => pauseDesk.resume(topic, details),
    reroute: (from, to, details) => reroute(desk, from, to, details),
    purge: (retention, details) =>
      new Purges(outboxRound(store, { ...retention, logger }), logger).purge(details),
  }
}
