// Java's own producer, of the kafka-clients that come with the broker's jars: what every other client is measured by.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { fetchKafkaJars } from './kafka-jars.ts'

const SOURCE = fileURLToPath(new URL('kafka/Partitions.java', import.meta.url))
const FLAGS = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData']

/** Sends a message with each key, and returns the partitions that the broker acked, in the order of the keys. */
export async function sendWithJava(
  brokers: readonly string[],
  topic: string,
  keys: readonly string[],
): Promise<number[]> {
  const jars = await fetchKafkaJars()
  const quiet = '-Dorg.slf4j.simpleLogger.defaultLogLevel=error'
  const args = [...FLAGS, quiet, '-cp', `${jars}/*`, SOURCE, brokers.join(), topic]
  const child = spawn('java', args, { timeout: 60_000 })
  child.stdin.end(keys.map((key) => `${key}\n`).join(''))
  const [output, problems, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  if (code !== 0) throw new Error(`Java's producer failed (exit code ${code}):\n${problems}`)
  return output.trim().split('\n').map(Number)
}
