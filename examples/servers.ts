// What the examples run on: the servers that DATABASE_URL and KAFKA_BROKERS name, or embedded ones, which end with the
// example. An application of your own needs nothing of this file.
import postgres from 'postgres'
import { resolveKafka } from '../test/support/servers/kafka-source.ts'
import { startPostgres } from '../test/support/servers/postgres-server.ts'

interface Server {
  stop(): Promise<void>
}

export async function openDatabase(): Promise<Server & { readonly url: string }> {
  const url = process.env['DATABASE_URL']
  if (url) return { url, stop: async () => {} }
  console.log('starting Postgres ...')
  return await startPostgres()
}

/** A second database on the same server, made if it is not there. */
export async function besideDatabase(url: string, name: string): Promise<string> {
  const client = postgres(url, { max: 1 })
  const found = await client`select from pg_database where datname = ${name}`
  if (found.length === 0) await client`create database ${client(name)}`
  await client.end()
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

export async function openKafka(): Promise<Server & { readonly brokers: string[] }> {
  if (!process.env['KAFKA_BROKERS']) console.log('starting Kafka ...')
  const { server, missing } = await resolveKafka()
  if (!server) throw new Error(`this example needs Kafka: ${missing}`)
  return server
}

/** Ends a server on Ctrl-C. */
export function onInterrupt(end: () => Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end())
}
