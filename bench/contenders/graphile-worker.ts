// graphile-worker: a job per event, added in the transaction; its task sends one message. Tuned: fifty jobs at
// once out of a local queue, completed in batches.
import { Logger, run, type Runner, runMigrations } from 'graphile-worker'
import { type BenchEvent, type MakeContender, messageOf } from '../contender.ts'
import { inTransaction, openPool, placeOrder } from '../node-postgres.ts'

const TUNED = {
  concurrentJobs: 50,
  localQueue: { size: 200 },
  completeJobBatchDelay: 5,
  failJobBatchDelay: 5,
}

export const make: MakeContender = async (stage) => {
  const pool = await openPool(stage)
  const producer = stage.kafka.producer()
  await runMigrations({ connectionString: stage.databaseUrl })
  let runner: Runner | undefined

  async function save(client: Pick<typeof pool, 'query'>, events: readonly BenchEvent[]) {
    const jobs = events.map((event) => JSON.stringify(event))
    if (jobs.length === 1) {
      await client.query("select graphile_worker.add_job('publish', $1::json)", jobs)
      return
    }
    await client.query(
      `select count(*) from unnest($1::json[]) as event,
        graphile_worker.add_job('publish', event)`,
      [jobs],
    )
  }

  return {
    async start() {
      await producer.connect()
      runner = await run({
        preset: { worker: { connectionString: stage.databaseUrl, ...(stage.tuned && TUNED) } },
        noHandleSignals: true,
        logger: silentLogger(),
        taskList: {
          publish: async (event) => {
            const messages = [messageOf(event as BenchEvent)]
            await producer.send({ topic: stage.topic, acks: -1, messages })
          },
        },
      })
    },
    async unit(events, committed) {
      await placeOrder(pool, events, (client) => save(client, events))
      committed()
    },
    async leaveBehind(events) {
      await inTransaction(pool, (client) => save(client, events))
    },
    async stop() {
      await runner?.stop()
      await producer.disconnect()
      await pool.end()
    },
  }
}

function silentLogger() {
  return new Logger(() => () => {})
}
