// pg-transactional-outbox, which finds its rows in one of two ways: by asking for them, or in the write-ahead log.
import { randomUUID } from 'node:crypto'
import {
  createReplicationSemaphoreConcurrencyController,
  DatabaseSetup,
  getDisabledLogger,
  initializeMessageStorage,
  initializePollingMessageListener,
  initializeReplicationMessageListener,
} from 'pg-transactional-outbox'
import { type BenchEvent, type Contender, messageOf, type Stage } from './contender.ts'
import { inTransaction, openPool, placeOrder } from './node-postgres.ts'

const POLLING_TUNED = { nextMessagesBatchSize: 50, nextMessagesPollingIntervalInMs: 50 }

export async function makePgTransactionalOutbox(
  stage: Stage,
  by: 'polling' | 'wal',
): Promise<Contender> {
  const pool = await openPool(stage)
  const producer = stage.kafka.producer()
  const logger = getDisabledLogger()
  const { hostname: host, port, username: user, pathname } = new URL(stage.databaseUrl)
  const database = pathname.slice(1)
  // Slots belong to the server, not to the database: the name has to be its own.
  const slot = `slot_${database}`
  const setup = {
    outboxOrInbox: 'outbox',
    database,
    schema: 'public',
    table: 'outbox',
    listenerRole: user,
    nextMessagesName: 'next_outbox_messages',
    publication: 'outbox_publication',
    replicationSlot: slot,
  } as const
  const config = {
    outboxOrInbox: 'outbox',
    dbListenerConfig: { host, port: Number(port), user, database },
    settings: {
      dbSchema: 'public',
      dbTable: 'outbox',
      // Both cost statements of their own; off is in its favour.
      enableMaxAttemptsProtection: false,
      enablePoisonousMessageProtection: false,
    },
  } as const
  if (stage.fresh) await createTable()
  const store = initializeMessageStorage(config, logger)
  let shutDown: (() => Promise<void>) | undefined

  async function createTable() {
    await pool.query(DatabaseSetup.dropAndCreateTable(setup))
    if (by === 'polling') {
      await pool.query(DatabaseSetup.createPollingFunction(setup))
      await pool.query(DatabaseSetup.setupPollingIndexes(setup))
    } else {
      await pool.query(DatabaseSetup.setupReplicationCore(setup))
      await pool.query(DatabaseSetup.setupReplicationSlot(setup))
    }
  }

  const publisher = {
    async handle({ payload }: { payload: unknown }) {
      const messages = [messageOf(payload as BenchEvent)]
      await producer.send({ topic: stage.topic, acks: -1, messages })
    },
  }

  function listen() {
    if (by === 'polling') {
      const settings = {
        ...config.settings,
        nextMessagesFunctionName: 'next_outbox_messages',
        ...(stage.tuned && POLLING_TUNED),
      }
      return initializePollingMessageListener({ ...config, settings }, publisher, logger)
    }
    const settings = {
      ...config.settings,
      dbPublication: 'outbox_publication',
      dbReplicationSlot: slot,
    }
    const strategies = stage.tuned
      ? { concurrencyStrategy: createReplicationSemaphoreConcurrencyController(10) }
      : {}
    return initializeReplicationMessageListener(
      { ...config, settings },
      publisher,
      logger,
      strategies,
    )
  }

  return {
    async start() {
      await producer.connect()
      ;[shutDown] = listen()
    },
    async unit(events, committed) {
      await placeOrder(pool, events, async (client) => {
        for (const event of events) await store(toMessage(event), client)
      })
      committed()
    },
    async leaveBehind(events) {
      await inTransaction(pool, async (client) => {
        for (const event of events) await store(toMessage(event), client)
      })
    },
    async stop() {
      await shutDown?.()
      await producer.disconnect()
      await pool.end()
    },
  }
}

function toMessage(event: BenchEvent) {
  return {
    id: randomUUID(),
    aggregateType: 'order',
    aggregateId: event.key,
    messageType: 'OrderPlaced',
    payload: event,
  }
}
