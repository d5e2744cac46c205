import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { parseMatrixArguments } from './arguments.ts'
import { chooseCells, environmentOf } from './cells.ts'

const choose = (...args: string[]) => chooseCells(parseMatrixArguments(args))
const names = (...args: string[]) => choose(...args).map(({ name }) => name)

it('has a cell for every version, one behind PgBouncer, and one for each version of the other client', () => {
  expect(names()).toEqual([
    'Postgres 14, Kafka 4.3',
    'Postgres 15, Kafka 4.3',
    'Postgres 16, Kafka 4.3',
    'Postgres 17, Kafka 4.3',
    'Postgres 18, Kafka 4.3',
    'Postgres 18, Kafka 3.9',
    'Postgres 18 behind PgBouncer, Kafka 4.3',
    'Postgres 18 with a role of few rights',
    '@platformatic/kafka 1',
    '@platformatic/kafka 2.12.1 on Node 24',
  ])
})

it('has a short form: the oldest of both, PgBouncer, few rights, and the newer client, on the files that tell most', () => {
  expect(names('--short')).toEqual([
    'Postgres 14, Kafka 3.9',
    'Postgres 18 behind PgBouncer, Kafka 4.3',
    'Postgres 18 with a role of few rights',
    '@platformatic/kafka 2.12.1 on Node 24',
  ])
})

it('leaves out behind PgBouncer what only versions of Kafka and Postgres decide', () => {
  const [oldest, pooled] = choose('--short')
  const left = oldest!.files.filter((file) => !pooled!.files.includes(file))
  expect(left.toSorted()).toEqual([
    'test/guarantees/operations/kept-plans.test.ts',
    'test/guarantees/operations/pgbouncer.test.ts',
    'test/guarantees/operations/stale-statistics.test.ts',
    'test/guarantees/order/hot-aggregate.test.ts',
    'test/integration/publishers/kafka.test.ts',
  ])
  expect(pooled!.files.every((file) => oldest!.files.includes(file))).toBe(true)
})

it('runs query builders and ORMs in the short form where the pooler may matter to them, in the long one everywhere', () => {
  const drivers = (...args: string[]) =>
    choose(...args).map((cell) => environmentOf(cell, {})['OUTBOX_DRIVERS'])
  expect(drivers('--short')).toEqual(['clients', undefined, 'clients', 'clients'])
  expect(new Set(drivers())).toEqual(new Set([undefined]))
})

it('names only files that are there, as vitest passes over a name without one', () => {
  const files = [...choose('--short'), ...choose()].flatMap((cell) => cell.files)
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
  const named = {
    DATABASE_URL: 'postgres://elsewhere',
    KAFKA_BROKERS: 'elsewhere:9092',
    KAFKA_CLIENT: 'kafkajs',
  }
  expect(environmentOf(cell!, { ...named, HOME: '/home/me' })).toEqual({
    HOME: '/home/me',
    POSTGRES_VERSION: '18',
    KAFKA_VERSION: '3.9',
    KAFKA_REQUIRED: 'true',
    PGBOUNCER: 'true',
  })
})

it('runs the files about Kafka on the one version of @platformatic/kafka that is named', () => {
  const [cell] = choose('--platformatic', '2', '--kafka', '3.9')
  expect(cell).toMatchObject({ name: '@platformatic/kafka 2.12.1 on Node 24', kafka: '3.9' })
  expect(cell!.files).toContain('test/guarantees/outages/cluster.test.ts')
  expect(environmentOf(cell!, { KAFKA_CLIENT: 'kafkajs' })).toMatchObject({
    KAFKA_CLIENT: 'platformatic',
    PLATFORMATIC_KAFKA_VERSION: '2.12.1',
    NODE_WANTED: '24.21.0',
  })
})

it.each([
  [['--postgres', '13'], /--postgres must be one of 14, 15, 16, 17, 18, got '13'/],
  [['--kafka', '4'], /--kafka must be one of 3\.9, 4\.3, got '4'/],
  [['--kafka'], /--kafka/],
  [['--platformatic', '3'], /--platformatic must be one of 1, 2, got '3'/],
  [['--long'], /--long/],
  [['16'], /16/],
])('refuses %j', (args, message) => {
  expect(() => parseMatrixArguments(args)).toThrow(message)
})
