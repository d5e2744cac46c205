// Units of work that share an aggregate without locking it: e0 and e1 are saved in this order and have no order to keep.
// e2, whose unit begins when e0 has committed, comes after e0, whatever became of e0 meanwhile: its COMMIT is answered
// late or never, it is refused, given back, or its send never answers. One careless unit must not break the order of
// careful ones.
import { sql as raw } from 'drizzle-orm'
import { expect, it } from 'vitest'
import type { OutboxEvent, OutboxOptions, Publisher, PublishResult } from '../../../src/index.ts'
import { useFixture } from '../../support/fixture.ts'
import { acked, failedAs } from '../../support/doubles/scripted-publisher.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

type Deferred = ReturnType<typeof defer<void>>
type Kind = 'transient' | 'permanent' | 'rejected'

/** What the world does to an event, by its name. */
interface Fate {
  /** Its unit waits here between the save and COMMIT. */
  readonly commit?: Deferred
  /** COMMIT is through, and its answer waits here. */
  readonly answer?: Deferred
  /** The answer to COMMIT never comes. */
  readonly isAnswerLost?: boolean
  /** Its unit locks the aggregate, as all of them should. */
  readonly locks?: boolean
  /** Its first send waits here. */
  readonly send?: Deferred
  /** Its first send fails. */
  readonly fails?: Kind
}

function openWorld(
  fates: Record<string, Fate>,
  options: Omit<Partial<OutboxOptions>, 'db'> = {},
  publisher: Partial<Publisher> = {},
) {
  const arrived: string[] = []
  const saved = new Set<string>()
  const begun = new Set<string>()
  const records: { gate: Deferred | null; waiting: number } = { gate: null, waiting: 0 }
  let next = ''

  // Late and lost answers to COMMIT, and a record that takes long, come about here: no server can be told to.
  const db = new Proxy(fixture.db, {
    get(target, property) {
      if (property === 'transaction') {
        return async (work: (tx: unknown) => Promise<unknown>) => {
          const name = next
          const { commit, answer, isAnswerLost } = fates[name] ?? {}
          const result = await target.transaction(async (tx) => {
            const done = await work(tx)
            saved.add(name)
            await commit?.promise
            return done
          })
          await answer?.promise
          if (isAnswerLost) throw new Error('the connection was lost at COMMIT')
          return result
        }
      }
      if (property === 'execute') {
        return async (query: { getSQL(): { toQuery(): { sql: string } } }) => {
          if (records.gate && query.getSQL().toQuery().sql.includes('record what failed')) {
            records.waiting += 1
            await records.gate.promise
          }
          return await target.execute(query as never)
        }
      }
      return Reflect.get(target, property, target) as unknown
    },
  })

  const answer = async (event: OutboxEvent): Promise<PublishResult> => {
    const name = JSON.parse(event.payload) as string
    const { send, fails } = begun.has(name) ? {} : (fates[name] ?? {})
    begun.add(name)
    await send?.promise
    if (fails) return failedAs(fails)
    arrived.push(name)
    return acked(event)
  }
  const outbox = fixture.outbox({
    db,
    poller: true,
    pollInterval: '100ms',
    threshold: '10s',
    publishTimeout: '5s',
    backoffBase: '300ms',
    publisher: {
      name: 'scripted',
      perLane: true,
      publish: (events) => Promise.all(events.map(answer)),
      ...publisher,
    },
    ...options,
  })

  const row = async (name: string) => {
    const rows = await fixture.sql<{ status: string; isGivenBack: boolean }[]>`
      select status, lease_token is null as "isGivenBack" from outbox
      where payload #>> '{}' = ${name}`
    return rows[0]
  }
  return {
    outbox,
    arrived,
    records,
    unit(name: string) {
      next = name
      return outbox.withOutbox(async (tx, emit) => {
        if (fates[name]?.locks) await tx.execute(raw`select pg_advisory_xact_lock(42)`)
        emit(newEvent({ aggregateId: 'one', payload: name }))
      })
    },
    saved: (name: string) => waitUntil(() => saved.has(name), { message: `${name} was saved` }),
    committed: (name: string) =>
      waitUntil(async () => (await row(name)) !== undefined, { message: `${name} committed` }),
    sending: (name: string) => waitUntil(() => begun.has(name), { message: `${name} was sent` }),
    arrival: (...names: string[]) =>
      waitUntil(() => names.every((name) => arrived.includes(name)), {
        message: `${names.join(' and ')} arrived`,
      }),
    /** The immediate path has either sent it or left it to the fallback, which may have put it off since. */
    decided: (name: string) =>
      waitUntil(async () => begun.has(name) || (await row(name))?.isGivenBack === true, {
        message: `${name} was sent or given back`,
      }),
    row,
  }
}

type World = ReturnType<typeof openWorld>

/** Either of the orders in which e2 comes after e0. */
const IN_ORDER = expect.stringMatching(/^(e0 e1 e2|e1 e0 e2|e0 e2 e1)$/) as string

it.each([
  ['none of them locks', {}],
  ['only e1 does not lock', { locks: true }],
])('keeps the order when the answer to COMMIT is late and %s', async (_, careful) => {
  const [commit, answer] = [defer(), defer()]
  const world = openWorld({ e0: { ...careful, commit, answer }, e2: careful })
  await world.outbox.start()
  const first = world.unit('e0')
  await world.saved('e0')
  await world.unit('e1')
  await world.arrival('e1')
  commit.resolve()
  await world.committed('e0')
  await world.unit('e2')
  await world.decided('e2')
  answer.resolve()
  await first
  await world.arrival('e0', 'e2')
  expect(world.arrived.join(' ')).toEqual(IN_ORDER)
})

it('keeps the order when the answer to COMMIT is lost', async () => {
  const commit = defer()
  const fates = { e0: { commit, isAnswerLost: true } }
  const world = openWorld(fates, { threshold: '2s', publishTimeout: '1s' })
  await world.outbox.start()
  const first = world.unit('e0')
  await world.saved('e0')
  await world.unit('e1')
  await world.arrival('e1')
  commit.resolve()
  await expect(first).rejects.toThrow('lost at COMMIT')
  await world.unit('e2')
  await world.arrival('e0', 'e2')
  expect(world.arrived.join(' ')).toEqual(IN_ORDER)
})

/** e0 was refused and its record takes long; e1, saved before, commits; then comes e2. */
async function refuseFirst(world: World, commits: { e0: Deferred; e1: Deferred }) {
  await world.outbox.start()
  const first = world.unit('e0')
  await world.saved('e0')
  const second = world.unit('e1')
  await world.saved('e1')
  world.records.gate = defer()
  commits.e0.resolve()
  await first
  await waitUntil(() => world.records.waiting > 0, { message: 'the record of e0 waits' })
  commits.e1.resolve()
  await second
  await world.arrival('e1')
  await world.unit('e2')
  // Its own giving back waits behind the record of e0, so nothing in the table shows the decision: another aggregate's
  // event, which goes through the same steps after it, does.
  const published = new Promise((resolve) => world.outbox.events.once('event:published', resolve))
  await world.outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'other' })))
  await world.arrival('other')
  world.records.gate.resolve()
  world.records.gate = null
  await published
  world.arrived.splice(world.arrived.indexOf('other'), 1)
}

it('keeps the order while the record of a refusal is under way', async () => {
  const commits = { e0: defer(), e1: defer() }
  const fates = {
    e0: { commit: commits.e0, fails: 'rejected' as const },
    e1: { commit: commits.e1 },
  }
  const world = openWorld(fates)
  await refuseFirst(world, commits)
  await world.arrival('e0', 'e2')
  expect(world.arrived.join(' ')).toEqual(IN_ORDER)
})

it('lets nothing pass a dead letter that holds while its record is under way', async () => {
  const commits = { e0: defer(), e1: defer() }
  const fates = {
    e0: { commit: commits.e0, fails: 'permanent' as const },
    e1: { commit: commits.e1 },
  }
  const world = openWorld(fates, { onDeadLetter: 'hold' })
  await refuseFirst(world, commits)
  await waitUntil(async () => (await world.row('e0'))?.status === 'dead_letter', {
    message: 'e0 is a dead letter',
  })
  await world.decided('e2')
  expect(world.arrived).toEqual(['e1'])
  await world.outbox.deadLetters.retry({ all: true })
  await world.arrival('e0', 'e2')
  expect(world.arrived.join(' ')).toEqual(IN_ORDER)
})

it('keeps the order while e0 is being given back, and nothing has failed', async () => {
  const [commit0, commit1, send] = [defer(), defer(), defer()]
  const world = openWorld({ p: { send }, e0: { commit: commit0 }, e1: { commit: commit1 } })
  // Saved without a lease: the fallback sends it.
  await fixture
    .handling({}, { enabled: false })
    .withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'one', payload: 'p' })))
  await world.outbox.start()
  await world.sending('p')
  const first = world.unit('e0')
  await world.saved('e0')
  send.resolve()
  await waitUntil(async () => (await world.row('p'))?.status === 'published', {
    message: 'p is recorded',
  })
  const second = world.unit('e1')
  await world.saved('e1')
  world.records.gate = defer()
  commit0.resolve()
  await first
  await waitUntil(() => world.records.waiting > 0, { message: 'e0 is being given back' })
  commit1.resolve()
  await second
  await world.unit('e2')
  await world.outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'other' })))
  await world.arrival('other')
  world.records.gate.resolve()
  world.records.gate = null
  await world.arrival('e0', 'e1', 'e2')
  expect(world.arrived.indexOf('e0')).toBeLessThan(world.arrived.indexOf('e2'))
})

it('keeps the order when the send of e0 is past its publishTimeout', async () => {
  const [commit0, commit1, send] = [defer(), defer(), defer()]
  const fates = {
    e0: { commit: commit0, send, fails: 'transient' as const },
    e1: { commit: commit1 },
  }
  const world = openWorld(
    fates,
    // e1 is sent only if most of its lease, which begins with its save, is left when the circuit lets it pass.
    { threshold: '5m', publishTimeout: '300ms' },
    { settlesWithinMs: 60_000 },
  )
  await world.outbox.start()
  const first = world.unit('e0')
  await world.saved('e0')
  const second = world.unit('e1')
  await world.saved('e1')
  const probing = new Promise((resolve) => world.outbox.events.once('circuit:half-open', resolve))
  commit0.resolve()
  await first
  await probing
  commit1.resolve()
  await second
  await world.arrival('e1')
  await world.unit('e2')
  await world.decided('e2')
  expect(world.arrived).toEqual(['e1'])
  send.resolve()
  await world.arrival('e0', 'e2')
  expect(world.arrived.join(' ')).toEqual(IN_ORDER)
})
