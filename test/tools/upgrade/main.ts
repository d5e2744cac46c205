// npm run upgrade: two instances of the last version under load on one table. The migrations of this version are applied
// under them, then this version replaces them one by one, and at last an instance of the old one joins again, as after a
// deployment that is taken back. The oracle is the torture's. The last line is one JSON object.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { requireWhole } from '../../support/run/whole-number.ts'
import { startKafka } from '../../support/servers/kafka-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { createTopic } from '../../support/servers/topic-reader.ts'
import { TABLES, TOPICS } from '../torture/business.ts'
import { judge, readArrivals, readJournal } from '../torture/oracle.ts'
import { drain } from '../torture/tables.ts'
import { buildOf, lastVersion } from './build-of.ts'
import type { ServiceArguments } from './service.ts'

const USAGE = 'npm run upgrade -- [--from v0.1.0] [--seconds 30]'
const SERVICE = fileURLToPath(new URL('./service.ts', import.meta.url))

interface UpgradeArguments {
  /** The old version; null: the last one. */
  readonly from: string | null
  readonly seconds: number
}

async function upgrade({ from, seconds }: UpgradeArguments) {
  const ref = from ?? (await lastVersion())
  say(`building ${ref} and the working tree`)
  const [old, current] = await Promise.all([buildOf(ref), buildOf(null)])
  closeLater(() => Promise.all([old.remove(), current.remove()]))
  const server = await startPostgres()
  closeLater(() => server.stop())
  const kafka = await startKafka()
  closeLater(() => kafka.stop())
  for (const topic of TOPICS) await createTopic(kafka.directBrokers, topic, 6)
  const client = postgres(server.url, { max: 1, onnotice: () => {} })
  closeLater(() => client.end())
  await client.unsafe(TABLES)

  let seed = 0
  const start = (build: string) =>
    Service.start({ build, databaseUrl: server.url, brokers: kafka.brokers, seed: (seed += 1) })
  const phase = () => delay((seconds * 1_000) / 5)

  say(`two instances of ${ref}`)
  const [first, second] = [await start(old.folder), await start(old.folder)]
  await phase()
  say('the migrations of the working tree')
  const publisher = handlersPublisher({ handlers: {} })
  await createOutbox({ db: drizzle(client), publisher }).migrate()
  await phase()
  say('the first instance is replaced')
  const third = await start(current.folder)
  await first.stop()
  await phase()
  say('the second one too')
  const fourth = await start(current.folder)
  await second.stop()
  await phase()
  say(`an instance of ${ref} joins again`)
  const fifth = await start(old.folder)
  await phase()
  await fifth.stop()
  await third.stop()
  // Before the table is looked at: what an outbox that sends nothing saved later would have no instance left.
  await fourth.endWriting()
  await drain(server.url)
  await fourth.stop()
  const verdict = judge(await readJournal(server.url), await readArrivals(kafka.directBrokers))
  return { from: ref, ...verdict }
}

/** An instance in a process of its own. Whatever it prints besides its start is shown. */
class Service {
  readonly #child: ChildProcess
  /** Rejects when the process has ended. */
  readonly #ended: Promise<never>

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#ended = once(child, 'exit').then(([code]) => {
      throw new Error(`an instance ended too early, with code ${code}`)
    })
    this.#ended.catch(() => {})
  }

  static async start(args: ServiceArguments): Promise<Service> {
    const flags = ['--import', 'tsx', SERVICE, JSON.stringify(args)]
    const child = spawn(process.execPath, flags, { stdio: ['ignore', 'pipe', 'inherit'] })
    closeLater(async () => void child.kill('SIGKILL'))
    const service = new Service(child)
    await service.#nextLine()
    return service
  }

  /** Resolves when its last unit of work has ended; its outbox goes on. */
  async endWriting(): Promise<void> {
    const quiet = this.#nextLine()
    this.#child.kill('SIGUSR2')
    await quiet
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    const [code] = await exited
    if (code !== 0) throw new Error(`an instance ended with code ${code}`)
  }

  async #nextLine(): Promise<void> {
    await Promise.race([once(this.#child.stdout!, 'data'), this.#ended])
  }
}

await runToVerdict({
  usage: USAGE,
  parse(args): UpgradeArguments {
    const options = { from: { type: 'string' }, seconds: { type: 'string' } } as const
    const { values } = parseArgs({ args: [...args], options })
    return {
      from: values.from ?? null,
      seconds: requireWhole('seconds', values.seconds ?? '30', 5, 3_600),
    }
  },
  run: upgrade,
  isGood: ({ committed, lost, phantom, duplicates, outOfOrder, corrupted }) =>
    committed > 0 && lost + phantom + duplicates + outOfOrder + corrupted === 0,
})
