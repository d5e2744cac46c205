// Savepoints for clients that have none, or none that we can watch: as statements, on the connection of the transaction.
import { overError } from '../errors.ts'
import type { OpenTransaction, TransactionWatch } from './driver.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import { InFlight } from './in-flight.ts'
import type { Statement } from './sql.ts'

const LOOK_MS = 1_000

/** A transaction of a client, as its driver sees it. */
export interface ClientTransaction<TTx> {
  /** Runs a statement of ours on the transaction's connection, past the guard. */
  query(statement: Statement): Promise<readonly unknown[]>
  /** The client's transaction, for a callback. Operations of several statements have to be followed. */
  guard(watch: TransactionWatch<TTx>, inFlight: InFlight): TTx
  /** Set when the transaction is over: another one may use its connection by then. */
  isOver: boolean
}

let savepoints = 0

export function openTransaction<TTx>(
  transaction: ClientTransaction<TTx>,
  inFlight = new InFlight(),
): OpenTransaction<TTx> {
  const savepoint = <T>(work: (inner: OpenTransaction<TTx>) => Promise<T>) =>
    inSavepoint(transaction, () =>
      inFlight.inside((level) => work(openTransaction(transaction, level))),
    )
  const guarded = (watch: TransactionWatch<TTx>) =>
    transaction.guard(
      {
        use: () => {
          watch.use()
          checkOpen(transaction)
        },
        savepoint: async (work) => {
          watch.use()
          return await watch.savepoint(work)
        },
      },
      inFlight,
    )
  const anyUse: TransactionWatch<TTx> = {
    use: () => {},
    savepoint: (work) => savepoint(async (inner) => work(inner.tx)),
  }
  return {
    get tx() {
      return guarded(anyUse)
    },
    async query(statement) {
      // An operation may never end. Then this notices that the client has ended the transaction, as when its time was over.
      while ((await raceTimeout(inFlight.ended(), LOOK_MS)) === 'late')
        await transaction.query({ text: 'select 1', values: [] })
      return await transaction.query(statement)
    },
    savepoint,
    guarded,
  }
}

type Session = Pick<ClientTransaction<unknown>, 'query' | 'isOver'>

function checkOpen({ isOver }: Session): void {
  if (isOver) throw overError('the transaction was used')
}

/** If the work fails, rolls back to the savepoint and rethrows the error. */
export async function inSavepoint<T>(session: Session, work: () => Promise<T>): Promise<T> {
  checkOpen(session)
  const run = (text: string) => session.query({ text, values: [] })
  const name = `aftercommit_${(savepoints += 1)}`
  await run(`savepoint ${name}`)
  try {
    const result = await work()
    checkOpen(session)
    await run(`release savepoint ${name}`)
    return result
  } catch (error) {
    if (session.isOver) throw error
    // If this fails, the transaction cannot commit.
    await run(`rollback to savepoint ${name}`)
      .then(() => run(`release savepoint ${name}`))
      .catch(() => {})
    throw error
  }
}
