// What a fail-over to an asynchronous standby can and cannot do, measured: docs/guides/fail-over.md says the same in words.
// The standby is cut off before the primary dies, so that what it never had is known exactly.
import { afterEach, expect, it } from 'vitest'
import { type FollowedOutbox, startFollowed } from '../../support/followed-outbox.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

let started: FollowedOutbox
afterEach(() => started.stop())

/** One event that the standby has, and so many that are published without it. */
async function loseEvents(count: number): Promise<FollowedOutbox> {
  started = await startFollowed('asynchronous')
  const { pair, emit, delivered, replicated } = started
  await emit('kept')
  await delivered('kept')
  await replicated()
  pair.link.halfOpen()
  const lost = Array.from({ length: count }, (_, n) => `lost ${n}`)
  for (const payload of lost) await emit(payload)
  await delivered(...lost)
  return started
}

/** More than Postgres takes from a sequence at a time; it logs 32 numbers ahead. */
const MANY = 50

it('published what has no row any more, and gives its numbers out again until the sequence is raised', async () => {
  const { pair, client, insist, delivered, seen } = await loseEvents(MANY)
  await pair.failOver()
  const rows = await waitUntil(
    () => client`select payload::text as payload from outbox`.catch(() => null),
    { message: 'the promoted server responds' },
  )
  expect(rows).toEqual([{ payload: '"kept"' }])
  const numbers = seen.map(({ seq }) => seq)
  expect(numbers).toHaveLength(1 + MANY)
  const numberOf = (wanted: unknown) => seen.find(({ payload }) => payload === wanted)!.seq

  await insist('after')
  await delivered('after')
  expect(numbers).toContain(numberOf('after'))
  await client.unsafe(RAISE)
  await insist('raised')
  await delivered('raised')
  expect(numberOf('raised')).toBeGreaterThan(Math.max(...numbers))
})

/** As docs/guides/fail-over.md has it. */
const RAISE = `select setval(pg_get_serial_sequence('outbox', 'seq'), nextval(pg_get_serial_sequence('outbox', 'seq')) + 1000000)`

it('soon tries again what rests after a failure that the standby never heard of', async () => {
  const outcome = defer()
  let isRefused = true
  started = await startFollowed('asynchronous', {
    backoffBase: '10m',
    handle: async ({ payload }) => {
      if (payload !== 'later' || !isRefused) return
      await outcome.promise
      throw new Error('not now')
    },
  })
  const { pair, client, emit, delivered, replicated } = started
  await emit('first')
  await delivered('first')
  await emit('later')
  await replicated()
  // The event has reached the standby; its failure does not.
  pair.link.halfOpen()
  outcome.resolve()
  const failed = async () => (await client`select from outbox where status = 'failed'`).length > 0
  await waitUntil(failed, { message: 'it rests' })
  // While others write, looks of the fallback begin later and later. By then they begin after the event.
  const [saved] = await client`select clock_timestamp() as at`
  const isPast = async () => {
    await emit('another', 'two')
    const [row] = await client`select clock_timestamp() > ${saved!['at']} + interval '6 s' as past`
    return Boolean(row?.['past'])
  }
  await waitUntil(isPast, { message: 'the fallback has looked beyond it' })
  isRefused = false
  await pair.failOver()
  await delivered('later')
  const [row] = await client`select status from outbox where payload::text = '"later"'`
  expect(row).toEqual({ status: expect.stringMatching(/pending|published/) as string })
})
