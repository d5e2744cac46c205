// Keeps the leases of this process alive (rule 5): from start() to stop(), and without them while a call sends and until
// nothing that it sent is held any more. Then it ends by itself, so that the process can end too. Outcomes have the same
// patience: once nothing waits for them, a database that fails does not keep the process alive.
import type { NewLoop } from '../runtime/background.ts'
import type { Loop } from '../runtime/loop.ts'
import type { Delivery } from './delivery.ts'
import { renewIntervalMs } from './leases.ts'
import type { Recorder } from './record.ts'

export interface RenewalParts {
  readonly delivery: Pick<Delivery, 'holdsAny' | 'renewOnce'>
  readonly recorder: Pick<Recorder, 'setPatience'>
  readonly newLoop: NewLoop
  readonly thresholdMs: number
}

export class Renewal {
  readonly #parts: RenewalParts
  readonly #loop: Loop
  #isStarted = false
  #calls = 0

  constructor(parts: RenewalParts) {
    const { delivery, newLoop, thresholdMs } = parts
    this.#parts = parts
    this.#loop = newLoop('renew', renewIntervalMs(thresholdMs), async () => {
      await delivery.renewOnce()
      this.#endIfIdle()
      return false
    })
  }

  start(): void {
    this.#isStarted = true
    this.#parts.recorder.setPatience(true)
    this.#loop.start()
  }

  /** From here on, outcomes that cannot be recorded are left to the fallback. */
  async stop(): Promise<void> {
    this.#isStarted = false
    this.#parts.recorder.setPatience(false)
    // A call that has begun since stop() still holds events.
    if (this.#calls === 0) await this.#loop.stop()
  }

  /** For a call that sends without start(). */
  async during<T>(call: () => Promise<T>): Promise<T> {
    this.#calls += 1
    if (!this.#isStarted) this.#parts.recorder.setPatience(true)
    this.#loop.start()
    try {
      return await call()
    } finally {
      this.#calls -= 1
      if (!this.#isStarted && this.#calls === 0) this.#parts.recorder.setPatience(false)
      this.#endIfIdle()
    }
  }

  #endIfIdle(): void {
    if (this.#isStarted || this.#calls > 0 || this.#parts.delivery.holdsAny) return
    // Not awaited: it may be the loop's own run that ends it.
    void this.#loop.stop()
  }
}
