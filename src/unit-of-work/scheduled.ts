// Cancels scheduled events that have not gone out. Cancelling belongs to the change that makes the event pointless, so it is
// part of the transaction around it, and is undone with it. Until that ends, the event does not go out.
import { requireIds } from '../checks/filter-values.ts'
import type { Database, Executor } from '../drivers/driver.ts'
import { executorOf, type OwnTransaction } from '../drivers/own-transaction.ts'
import { OutboxError } from '../errors.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import { type Level, levelOf } from './open-unit.ts'
import { openOn } from './surroundings.ts'
import type { UnitsOfWork } from './unit-of-work.ts'

/** What `outbox.scheduled` offers. */
export interface Scheduled extends Pick<ScheduledDesk, 'cancel' | 'cancelIn'> {}

export interface ScheduledDeskParts {
  readonly db: Database<unknown>
  readonly store: Pick<Store<Executor>, 'cancel' | 'cancelIn'>
  readonly units: UnitsOfWork
}

export class ScheduledDesk {
  readonly #parts: ScheduledDeskParts

  constructor(parts: ScheduledDeskParts) {
    this.#parts = parts
  }

  /**
   * Cancels a scheduled event, so that it never goes out. Inside a unit of work, it is part of that, and is undone if that
   * rolls back. Returns false if the event has gone out or is about to, if it was cancelled before, or if there is none.
   */
  async cancel(given: string): Promise<boolean> {
    const id = requireId(given)
    const { db, store, units } = this.#parts
    const level = units.here
    if (level) return await this.#cancelAt(level, id)
    const inside = openOn(db.client)
    if (!inside) return await store.cancel(id)
    throw new OutboxError(
      'NESTED',
      `scheduled.cancel() inside ${inside.kind} would commit separately from it; call scheduled.cancelIn(tx, id)`,
    )
  }

  /** Cancels a scheduled event in a transaction that your own code began, or in that of a unit of work. */
  async cancelIn(tx: OwnTransaction, given: string): Promise<boolean> {
    const id = requireId(given)
    const { store, units } = this.#parts
    const level = levelOf(tx)
    if (level?.owner === units) return await this.#cancelAt(level, id)
    return await store.cancelIn(executorOf(tx), id)
  }

  async #cancelAt(level: Level, id: string): Promise<boolean> {
    const { db, store } = this.#parts
    return level.unit.takeBack(level, id) || (await store.cancel(id, db.join(level.tx)))
  }
}

/** As emit() returns it: an application may keep it in capitals. */
function requireId(id: unknown): string {
  requireIds('id', typeof id === 'string' ? id : [id])
  return (id as string).toLowerCase()
}
