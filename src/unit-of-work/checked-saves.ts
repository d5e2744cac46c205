// With relay: 'cdc', the first save checks that a connector would see the event. start() checks the same, but a process may save
// without it, and its events would be stored as published although nothing ever sends them.
import type { Executor } from '../drivers/driver.ts'
import type { Store } from '../store/outbox/outbox-store.ts'

/**
 * The same store, which saves only once `requireReady` has passed. It runs in the transaction of the save, because that one may
 * have the last connection, and again with each save until it has passed once.
 */
export function checkedSaves<S extends Pick<Store<Executor>, 'save' | 'saveIn'>>(
  store: S,
  isReady: () => boolean,
  requireReady: (tx: Executor) => Promise<void>,
): S {
  return {
    ...store,
    async save(tx, ...given) {
      if (!isReady()) await requireReady(tx)
      return await store.save(tx, ...given)
    },
    async saveIn(tx, ...given) {
      if (!isReady()) await requireReady(tx)
      return await store.saveIn(tx, ...given)
    },
  }
}
