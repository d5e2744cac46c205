// A service that kills itself, kill -9, at one named step of the path and nowhere else.
import { sql, type SQL } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox, type Publisher, type PublishResult } from '../../../src/index.ts'
import type { DrizzleDatabase } from '../../../src/drivers/driver.ts'
import { CRASH_STEPS } from '../crash-steps.ts'
import { kafkaClient } from '../kafka-clients.ts'

type Executes = Pick<DrizzleDatabase, 'execute'>

const [url, broker, topic, table, name, kafkaName] = process.argv.slice(2)
const step = CRASH_STEPS[name!]!
const { scene } = step
const dialect = new PgDialect()

async function around<T>(at: string, action: () => PromiseLike<T>): Promise<T> {
  if (step.at === at && step.when === 'before') process.kill(process.pid, 'SIGKILL')
  const result = await action()
  if (step.at === at && step.when === 'after') process.kill(process.pid, 'SIGKILL')
  return result
}

interface Session {
  readonly client: { unsafe(text: string, ...rest: unknown[]): PromiseLike<unknown> }
}

function stepOf(text: string): string {
  const [, at = 'the business'] = /aftercommit: ([a-z ]+) /.exec(text) ?? []
  return at
}

/** The database, with an eye on each statement that names its step. */
function watch<T extends Executes>(executor: T): T {
  return new Proxy(executor, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      if (property === 'execute') {
        return (query: SQL) => {
          const { sql: text } = dialect.sqlToQuery(query.getSQL())
          return around(stepOf(text), () => target.execute(query))
        }
      }
      // Where a statement is prepared.
      if (property === 'session') {
        const { client } = value as Session
        const unsafe: Session['client']['unsafe'] = (text, ...rest) =>
          around(stepOf(text), () => client.unsafe(text, ...rest))
        return { client: { unsafe } }
      }
      if (property === 'transaction') {
        const transact = (target as unknown as DrizzleDatabase).transaction.bind(target)
        return (unit: (tx: Executes) => Promise<unknown>) =>
          around('COMMIT', () => transact((tx: Executes) => unit(watch(tx))))
      }
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

const real = kafkaClient(kafkaName!).publisher([broker!])
const never = new Promise<never>(() => {})
const refused: PublishResult = { ok: false, kind: 'rejected', error: new Error('not now') }
const publisher: Publisher = {
  ...real,
  async publish(events) {
    if (scene === 'hanging send' || scene === 'stop') return await never
    if (scene === 'refusing handler') return events.map(() => refused)
    return await around('send', () => real.publish(events))
  },
}

const outbox = createOutbox({
  db: watch(drizzle(postgres(url!))),
  publisher,
  table: table!,
  // Half of it has to be left when a send begins, also while other processes start.
  threshold: '4s',
  publishTimeout: '2s',
  stopTimeout: 0,
  immediate: scene !== 'fallback',
  poller: false,
  cleanup: false,
  retention: '1s',
  backoffBase: 0,
  logger: false,
})

/** Three events of one aggregate, in the journal of the business too. */
async function work(): Promise<void> {
  await outbox.withOutbox(async (tx, emit) => {
    for (const n of [1, 2, 3]) {
      const event = {
        type: 'OrderCompleted',
        aggregateType: 'order',
        aggregateId: 'one',
        payload: n,
      }
      const id = emit({ ...event, topic: topic! })
      await tx.execute(sql`insert into journal values (${table}, ${id}::uuid)`)
    }
  })
}

const published = new Promise((resolve) => {
  let count = 0
  outbox.events.on('event:published', () => {
    count += 1
    if (count === 3) resolve(count)
  })
})
await outbox.start()
await work()
if (scene === 'stop') {
  // These wait behind the first in their lane: they are what stop() gives back.
  await work()
  await outbox.stop()
} else if (scene === 'fallback') await outbox.pollOnce()
else if (scene === 'purge') {
  await published
  await outbox.purge()
}
await never
