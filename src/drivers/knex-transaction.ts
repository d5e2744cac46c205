// What a unit of work receives on Knex: Knex's own transaction behind a proxy, with a client that checks each query when it
// runs. Builders take the client from the transaction that makes them, or that transacting() is given, so nothing gets past it.
import type { Knex } from 'knex'
import type { TransactionWatch } from './driver.ts'
import { controlError, refuseControl } from './transaction-text.ts'

export function guardKnex(
  tx: Knex.Transaction,
  { use, savepoint }: TransactionWatch<Knex.Transaction>,
): Knex.Transaction {
  const client = guardClient(tx.client as Client, use)
  const nest = async (work?: unknown) => {
    use()
    if (typeof work !== 'function') throw controlError('SAVEPOINT')
    return await savepoint(work as (inner: Knex.Transaction) => unknown)
  }
  const transactionProvider = () => refuse('SAVEPOINT')
  const { context } = tx as unknown as { context: object }
  const own = {
    client,
    // batchInsert() nests by way of the context.
    context: Object.assign(Object.create(context) as Context, {
      client,
      transaction: nest,
      transactionProvider,
    }),
    transaction: nest,
    transactionProvider,
    savepoint: nest,
    commit: refuse('COMMIT'),
    rollback: refuse('ROLLBACK'),
  }
  return new Proxy(tx, {
    apply(_, __, [table, ...options]: [unknown, ...unknown[]]) {
      const builder = own.context.queryBuilder()
      return table ? builder.table(table, ...options) : builder
    },
    get(target, property, receiver) {
      if (Object.hasOwn(own, property)) return own[property as keyof typeof own]
      return Reflect.get(target, property, receiver) as unknown
    },
  })
}

function refuse(statement: string) {
  return async () => {
    throw controlError(statement)
  }
}

interface Context {
  queryBuilder(): { table(...given: unknown[]): unknown }
}

interface Client {
  acquireConnection(): Promise<unknown>
  query(connection: unknown, query: Query): Promise<unknown>
  stream(connection: unknown, query: Query, ...given: unknown[]): Promise<unknown>
}

type Query = string | { readonly sql?: string }

function guardClient(client: Client, check: () => void): Client {
  const checkText = (query: Query) => {
    check()
    refuseControl(typeof query === 'string' ? query : (query.sql ?? ''))
  }
  const own: Client = {
    // A builder reads it before it sends anything, and so does emitIn() of another outbox.
    async acquireConnection() {
      check()
      return await client.acquireConnection()
    },
    async query(connection, query) {
      checkText(query)
      return await client.query(connection, query)
    },
    async stream(connection, query, ...given) {
      checkText(query)
      return await client.stream(connection, query, ...given)
    },
  }
  return Object.assign(Object.create(client) as Client, own)
}
