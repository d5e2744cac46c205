// outbox.pause() and outbox.resume(): written to the database for all instances, in force here when they return.
import { rejectUnknown, requireName } from '../checks/checks.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { Pauses } from '../delivery/pauses.ts'
import type { Logger } from '../runtime/logger.ts'
import type { ControlStore } from '../store/outbox/control-store.ts'
import { type DoneBy, doneBy } from './done-by.ts'

/** For those who find the pause later. */
export interface PauseDetails {
  /** Who paused it. */
  by?: string
  reason?: string
}

export interface PauseParts {
  readonly control: Pick<ControlStore, 'pause' | 'resume' | 'pauses'>
  /** What this process obeys. */
  readonly pauses: Pick<Pauses, 'learn'>
  readonly logger: Logger
}

export class PauseDesk {
  readonly #parts: PauseParts

  constructor(parts: PauseParts) {
    this.#parts = parts
  }

  async pause(topic: string | null, details: PauseDetails): Promise<boolean> {
    rejectUnknown('pause()', details, ['by', 'reason'])
    const by = optionalText('by', details.by)
    const reason = optionalText('reason', details.reason)
    const isNew = await this.#parts.control.pause(checkTopic(topic), { by, reason })
    if (isNew) this.#parts.logger.info({ topic, by, reason }, 'a pause was begun by pause()')
    await this.#learn()
    return isNew
  }

  async resume(topic: string | null, details: DoneBy): Promise<boolean> {
    const who = doneBy('resume()', details)
    const wasPaused = await this.#parts.control.resume(checkTopic(topic))
    if (wasPaused) this.#parts.logger.info({ topic, ...who }, 'a pause was ended by resume()')
    await this.#learn()
    return wasPaused
  }

  #learn(): Promise<void> {
    const { pauses, control } = this.#parts
    return pauses.learn(() => control.pauses())
  }
}

// A topic that is missing must not pause everything: it is most often a variable that was undefined.
function checkTopic(topic: string | null): string | null {
  if (topic === undefined) {
    throw new OutboxOptionsError('pause() and resume() take a topic, or null for everything')
  }
  return topic === null ? null : requireName('topic', topic)
}

function optionalText(name: string, value: string | undefined): string | null {
  return value === undefined ? null : requireName(name, value)
}
