import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parseMatrixArguments } from './arguments.ts'
import { chooseCells, environmentOf } from './cells.ts'

const choose = (...args: string[]) => chooseCells(parseMatrixArguments(args))
const names = (...args: string[]) => choose(...args).map(({ name }) => name)

it('has a cell for every version, and one behind PgBouncer', () => {
  expect(names()).toEqual([
    'Postgres 14, Kafka 4.3',
    'Postgres 15, Kafka 4.3',
    'Postgres 16, Kafka 4.3',
    'Postgres 17, Kafka 4.3',
    'Postgres 18, Kafka 4.3',
    'Postgres 18, Kafka 3.9',
    'Postgres 18 behind PgBouncer, Kafka 4.3',
  ])
})

it('has a short form: the oldest of both, and PgBouncer, on the files that tell most', () => {
  expect(names('--short')).toEqual([
    'Postgres 14, Kafka 3.9',
    'Postgres 18 behind PgBouncer, Kafka 4.3',
  ])
})

it('names only files that are there, as vitest passes over a name without one', () => {
  const files = choose('--short').flatMap((cell) => cell.files)
  expect(files.length).toBeGreaterThan(0)
  expect(files.filter((file) => !existsSync(new URL(`../../../${file}`, import.meta.url)))).toEqual(
    [],
  )
})

it.each([
  [['--postgres', '16'], 'Postgres 16, Kafka 4.3'],
  [['--kafka', '3.9'], 'Postgres 18, Kafka 3.9'],
  [['--postgres', '15', '--kafka', '3.9'], 'Postgres 15, Kafka 3.9'],
  [['--pgbouncer'], 'Postgres 18 behind PgBouncer, Kafka 4.3'],
  [['--pgbouncer', '--postgres', '14'], 'Postgres 14 behind PgBouncer, Kafka 4.3'],
])('runs the one cell that %j names, on all files', (args, name) => {
  expect(choose(...args)).toMatchObject([{ name, files: ['test/integration', 'test/guarantees'] }])
})

it('runs a cell on servers of its own, and demands the Kafka of its name', () => {
  const [cell] = choose('--pgbouncer', '--kafka', '3.9')
  const named = { DATABASE_URL: 'postgres://elsewhere', KAFKA_BROKERS: 'elsewhere:9092' }
  expect(environmentOf(cell!, { ...named, HOME: '/home/me' })).toEqual({
    HOME: '/home/me',
    POSTGRES_VERSION: '18',
    KAFKA_VERSION: '3.9',
    KAFKA_REQUIRED: 'true',
    PGBOUNCER: 'true',
  })
})

it.each([
  [['--postgres', '13'], /--postgres must be one of 14, 15, 16, 17, 18, got '13'/],
  [['--kafka', '4'], /--kafka must be one of 3\.9, 4\.3, got '4'/],
  [['--kafka'], /--kafka/],
  [['--long'], /--long/],
  [['16'], /16/],
])('refuses %j', (args, message) => {
  expect(() => parseMatrixArguments(args)).toThrow(message)
})
