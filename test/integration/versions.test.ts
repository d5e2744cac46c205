// Servers, clients and Node are of the versions that were asked for: otherwise a run on another version proves nothing.
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Producer } from '@platformatic/kafka'
import postgres from 'postgres'
import { describe, expect, inject, it } from 'vitest'
import { fetchKafkaJars } from '../support/servers/kafka-jars.ts'
import { chosenKafka, chosenPostgres, kafkaReleases } from '../support/servers/server-versions.ts'

describe.skipIf(process.env['DATABASE_URL'])('the shared Postgres', () => {
  it('is of the version that was asked for, and behind PgBouncer if that was asked for', async () => {
    const url = inject('databaseUrl')
    const client = postgres(url, { max: 1 })
    const [server] = await client`
      select current_setting('server_version_num')::int / 10000 as major, inet_server_port() as port`
    await client.end()
    expect(String(server!['major'])).toBe(chosenPostgres())
    const isPooled = String(server!['port']) !== new URL(url).port
    expect(isPooled).toBe(process.env['PGBOUNCER'] === 'true')
  })
})

describe.skipIf(inject('ownKafkaMissing') !== null)('the Kafka of the tests', () => {
  it('is of the version that was asked for', async () => {
    const jars = await readdir(await fetchKafkaJars())
    const release = kafkaReleases.get(chosenKafka())!
    expect(jars.filter((name) => /^kafka(_|-clients)/.test(name)).toSorted()).toEqual([
      `kafka-clients-${release}.jar`,
      `kafka_2.13-${release}.jar`,
    ])
  })
})

describe('@platformatic/kafka', () => {
  it('is of the version that was asked for, and so is Node', async () => {
    // As Node finds it for the publisher, also in the processes that tests start.
    const publisher = new URL('../../src/publishers/platformatic-kafka/', import.meta.url)
    const file = createRequire(publisher).resolve('@platformatic/kafka')
    const { Producer: found } = (await import(pathToFileURL(file).href)) as {
      Producer: typeof Producer
    }
    expect(found).toBe(Producer)
    const description = await readFile(new URL('../package.json', pathToFileURL(file)), 'utf8')
    const { version } = JSON.parse(description) as { version: string }
    const { PLATFORMATIC_KAFKA_VERSION: wanted, NODE_WANTED: node } = process.env
    expect(version).toMatch(wanted === undefined ? /^1\./ : new RegExp(`^${wanted}$`))
    expect(process.versions.node).toBe(node ?? process.versions.node)
  })
})
