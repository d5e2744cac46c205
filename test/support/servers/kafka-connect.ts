// A real Kafka Connect worker with Debezium's Postgres connector, in standalone mode and a temporary folder of its own.
// It can be killed, frozen, and started again with the offsets that it had written.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitUntil } from '../timing/wait-until.ts'
import { cachePath } from './download-cache.ts'
import { findFreePort } from './free-port.ts'
import { fetchJars } from './kafka-jars.ts'
import type { KafkaNode } from './kafka-node.ts'
import { createOwnedFolder } from './owned-folder.ts'
import { endProcess, type ServerProcess, spawnServer } from './server-process.ts'

/** What `aftercommit cdc-config` prints. */
export type Connector = {
  readonly name: string
  readonly config: Readonly<Record<string, string>>
}

/** start() resolves when the connector's task runs. stop() lets it note its place; after kill() the last note counts. */
export type KafkaConnect = Pick<
  KafkaNode,
  'start' | 'stop' | 'kill' | 'pause' | 'resume' | 'remove'
> & {
  /** The connector in the worker's REST interface. */
  readonly url: string
  /** The last lines that the worker wrote. */
  readonly output: string
}

const CONNECT = '4.1.1'
const DEBEZIUM = '3.4.0.Final'
const JAVA = ['-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData']
const QUIET = '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'

function fetchConnectJars(): Promise<string> {
  const pom = fileURLToPath(new URL('kafka-connect/pom.xml', import.meta.url))
  const jars = cachePath(`kafka-connect-${CONNECT}-debezium-${DEBEZIUM}/jars`)
  return fetchJars(jars, pom, { 'connect.version': CONNECT, 'debezium.version': DEBEZIUM })
}

/** A worker for one connector, not yet started. */
export async function createKafkaConnect(
  brokers: readonly string[],
  connector: Connector,
): Promise<KafkaConnect> {
  const jars = await fetchConnectJars()
  const folder = await createOwnedFolder('aftercommit-connect-')
  const port = await findFreePort()
  const rest = `http://127.0.0.1:${port}`
  const worker = {
    'bootstrap.servers': brokers.join(),
    'key.converter': 'org.apache.kafka.connect.json.JsonConverter',
    'value.converter': 'org.apache.kafka.connect.json.JsonConverter',
    'offset.storage.file.filename': join(folder.path, 'offsets'),
    'offset.flush.interval.ms': '500',
    'plugin.discovery': 'service_load',
    listeners: rest,
  }
  const [workerFile, connectorFile] = [
    join(folder.path, 'worker.properties'),
    join(folder.path, 'connector.json'),
  ]
  const lines = Object.entries(worker).map(([name, value]) => `${name}=${value}\n`)
  await writeFile(workerFile, lines.join(''))
  await writeFile(connectorFile, JSON.stringify(connector))
  const main = ['org.apache.kafka.connect.cli.ConnectStandalone', workerFile, connectorFile]
  const java = [...JAVA, QUIET, `-Djava.io.tmpdir=${folder.path}`, '-cp', `${jars}/*`, ...main]
  let server: ServerProcess | undefined

  const url = `${rest}/connectors/${connector.name}`

  return {
    url,
    get output() {
      return server?.output ?? ''
    },
    async start() {
      if (server?.running) return
      const started = await spawnServer(folder, 'java', java, { endSignal: 'KILL' })
      server = started
      await waitUntil(() => isRunning(started, `${url}/status`), {
        timeoutMs: 60_000,
        message: () => `the connector runs:\n${started.output}`,
      })
    },
    stop: () => endProcess(server, 'SIGTERM'),
    kill: () => endProcess(server, 'SIGKILL'),
    pause: () => server?.signal('SIGSTOP'),
    resume: () => server?.signal('SIGCONT'),
    async remove() {
      await endProcess(server, 'SIGKILL')
      await folder.remove()
    },
  }
}

type Status = { tasks?: { state: string; trace?: string }[] }

async function isRunning(server: ServerProcess, url: string): Promise<boolean> {
  if (!server.running) throw new Error(`Kafka Connect ended before it was ready:\n${server.output}`)
  const response = await fetch(url).catch(() => null)
  const { tasks = [] } = response?.ok ? ((await response.json()) as Status) : {}
  const [task] = tasks
  if (task?.state === 'FAILED') throw new Error(`the connector failed: ${task.trace}`)
  return task?.state === 'RUNNING'
}
