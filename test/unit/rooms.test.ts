// The rooms of src/ keep their doors shut: a step of the path imports earlier steps and what supports them, never a
// later one, so that nothing on the way reaches back up; only the store writes SQL, and only publishers know a broker.
import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

const src = new URL('../../src/', import.meta.url)

/** From what knows nothing of the others to what knows them all. What stands together knows nothing of each other. */
const FROM_THE_GROUND_UP = [
  ['errors.ts'],
  ['checks'],
  ['runtime'],
  ['event'],
  ['lifecycle.ts'],
  ['telemetry'],
  ['drivers'],
  ['store'],
  ['envelope'],
  ['publishers'],
  ['options'],
  ['unit-of-work'],
  ['delivery'],
  ['upkeep'],
  ['inbox', 'outbox.ts'],
  ['index.ts'],
  ['dashboard'],
  ['cli', 'testing', 'nestjs'],
]
const floorOf = (room: string) => FROM_THE_GROUND_UP.findIndex((floor) => floor.includes(room))

const names = (await readdir(src, { recursive: true })).filter((name) => /\.tsx?$/.test(name))
const files = await Promise.all(
  names.map(async (name) => ({ name, text: await readFile(new URL(name, src), 'utf8') })),
)
const roomOf = (name: string) => name.split('/')[0]!
const importsOf = ({ name, text }: { name: string; text: string }) =>
  [...text.matchAll(/(?:from|import) '(\.[^']+)'/g)].map(([, path]) =>
    new URL(path!, new URL(name, src)).pathname.slice(src.pathname.length),
  )

it('has a place for every room, and four files beside them', () => {
  expect([...new Set(names.map(roomOf))].filter((room) => floorOf(room) === -1)).toEqual([])
  const atTheRoot = names.filter((name) => !name.includes('/')).toSorted()
  expect(atTheRoot).toEqual(['errors.ts', 'index.ts', 'lifecycle.ts', 'outbox.ts'])
})

it('has the rooms in the same order as docs/architecture.md', async () => {
  const page = await readFile(new URL('../docs/architecture.md', src), 'utf8')
  const [, section] = /^## Rooms\n(.*?)^## /ms.exec(page)!
  const cells = [...section!.matchAll(/^\| (`.*?`) \|/gm)].map(([, cell]) => cell!)
  const documented = cells.flatMap((cell) =>
    [...cell.matchAll(/`(.+?)\/?`/g)].map(([, room]) => room),
  )
  expect(documented).toEqual(FROM_THE_GROUND_UP.flat())
})

it('lets no room import a later one', () => {
  const back = files.flatMap((file) =>
    importsOf(file)
      .filter((to) => roomOf(to) !== roomOf(file.name))
      .filter((to) => floorOf(roomOf(to)) >= floorOf(roomOf(file.name)))
      .map((to) => `${file.name} imports ${to}`),
  )
  expect(back).toEqual([])
})

/** From the record back to the two ways in: each file knows those before it. */
const DELIVERY = [
  ['leased-event.ts'],
  ['leases.ts'],
  ['own-events.ts', 'tally.ts', 'reach.ts'],
  ['order.ts', 'circuits.ts', 'pauses.ts', 'claim-size.ts', 'failure-record.ts'],
  ['gate.ts', 'record.ts', 'read-payloads.ts'],
  ['send.ts'],
  ['claimed-sends.ts'],
  ['immediate.ts', 'fallback.ts'],
  ['probe-chances.ts'],
  ['pipeline.ts'],
  ['flush.ts'],
  ['delivery.ts'],
  ['renewal.ts'],
]

it('lets no step of the delivery import a later one', () => {
  const stepOf = (name: string) => DELIVERY.findIndex((step) => step.includes(name))
  const own = files.filter(({ name }) => roomOf(name) === 'delivery')
  const back = own.flatMap((file) => {
    const from = stepOf(file.name.slice('delivery/'.length))
    return importsOf(file)
      .filter((to) => roomOf(to) === 'delivery')
      .filter((to) => from === -1 || stepOf(to.slice('delivery/'.length)) > from)
      .map((to) => `${file.name} imports ${to}`)
  })
  expect(back).toEqual([])
})

it('writes SQL in the store alone', () => {
  const writing = files.filter(({ text }) => /\bsql`/.test(text)).map(({ name }) => roomOf(name))
  expect([...new Set(writing)].toSorted()).toEqual(['drivers', 'store'])
  // The template itself.
  const inDrivers = files.filter(
    ({ name, text }) => roomOf(name) === 'drivers' && /\bsql`/.test(text),
  )
  // The checks of drivers need statements to run, and are no part of the path.
  const own = ['drivers/conformance.ts', 'drivers/sql.ts']
  expect(inDrivers.map(({ name }) => name).toSorted()).toEqual(own)
})

it.each([
  ['kafkajs', 'publishers/kafka/'],
  ['@platformatic/kafka', 'publishers/platformatic-kafka/'],
  ['amqplib', 'publishers/rabbitmq/'],
  ['drizzle-orm', 'store/'],
  ['postgres', 'drivers/'],
  ['pg', 'drivers/'],
  ['@opentelemetry/api', 'telemetry/otel/'],
  ['prom-client', 'telemetry/'],
  ['@nestjs', 'nestjs/'],
])('knows %s in %s alone', (client, place) => {
  const pattern = new RegExp(`from '${client}(?:/[^']*)?'`)
  const users = files.filter(({ text }) => pattern.test(text)).map(({ name }) => name)
  expect(users.filter((name) => !name.startsWith(place))).toEqual([])
  expect(users).not.toEqual([])
})

it('says in each room what happens in it, and names every file of it', async () => {
  const folders = new Set(names.flatMap((name) => (name.includes('/') ? [folderOf(name)] : [])))
  const unnamed: string[] = []
  for (const folder of folders) {
    const readme = await readFile(new URL(`${folder}README.md`, src), 'utf8').catch(() => '')
    for (const name of names.filter((one) => folderOf(one) === folder)) {
      if (!readme.includes(`\`${name.slice(folder.length)}\``)) unnamed.push(name)
    }
  }
  expect(unnamed).toEqual([])
})

function folderOf(name: string): string {
  return name.slice(0, name.lastIndexOf('/') + 1)
}
