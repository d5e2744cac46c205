// A publisher's own producers. kafkajs waits longer and longer between its attempts to reconnect, so a producer that went
// through an outage may idle long after the broker is back; and on a connection that hangs, every client queues further
// requests behind the one that got no response. So no send waits for a producer that is stuck or has failed: the next send
// opens a new one, which connects at once. The old one closes when its last send has settled, because its ack may still
// arrive. A line is a producer with the calls that are under way on it.
import { performance } from 'node:perf_hooks'
import { raceTimeout } from '../../runtime/race-timeout.ts'
import { Turns } from '../../runtime/turns.ts'

const STUCK_MS = 2_000
/** How long a send waits for a producer that keeps failing to connect, before it fails with the cause. */
const CONNECT_PATIENCE_MS = 1_000
/** How often it looks for a cause after that. */
const LOOK_AGAIN_MS = 100
/** A limit, so that connections to a broker that accepts them and never responds do not pile up. */
const MAX_LINES = 4

interface Call {
  readonly begunAt: number
}

export interface Connectable {
  /** Why it has not connected yet, if that is known while connect() still tries. */
  readonly connectionError?: Error | null
  connect(): Promise<unknown>
  disconnect(): Promise<unknown>
}

interface Line<P extends Connectable> {
  readonly producer: P
  readonly ready: Promise<unknown>
  /** The calls that have not settled, oldest first. The connect is the first. */
  readonly pending: Set<Call>
  connected: boolean
  failed: boolean
  retired: boolean
}

export class ProducerLines<P extends Connectable> {
  readonly turns = new Turns()
  readonly #makeProducer: () => P
  readonly #lines = new Set<Line<P>>()
  #current: Line<P> | null = null
  #closings = 0

  constructor(makeProducer: () => P) {
    this.#makeProducer = makeProducer
  }

  async connect(): Promise<void> {
    await waitUntilReady(this.#take())
  }

  /** `distrust` marks the producer as failed, so that the next send does not use it. */
  async use<T>(send: (producer: P, distrust: () => void) => Promise<T>): Promise<T> {
    const line = this.#take()
    const call = beginCall(line)
    const distrust = () => {
      line.failed = true
    }
    try {
      if (!line.connected) {
        await waitUntilReady(line).catch((error: unknown) => {
          distrust()
          throw error
        })
      }
      return await send(line.producer, distrust)
    } finally {
      this.#endCall(line, call)
    }
  }

  /** How often it was closed. A send that sees this change must not begin again: it would open what is never closed. */
  get closings(): number {
    return this.#closings
  }

  async disconnect(): Promise<void> {
    this.#closings += 1
    this.#current = null
    await Promise.all([...this.#lines].map((line) => this.#close(line)))
  }

  #take(): Line<P> {
    const line = this.#current
    if (line && (!isStuck(line) || this.#lines.size >= MAX_LINES)) return line
    if (line) this.#retire(line)
    return (this.#current = this.#open())
  }

  #open(): Line<P> {
    const producer = this.#makeProducer()
    const ready = producer.connect()
    const fresh = { connected: false, failed: false, retired: false }
    const line: Line<P> = { producer, ready, pending: new Set(), ...fresh }
    this.#lines.add(line)
    void this.#watchConnect(line)
    return line
  }

  async #watchConnect(line: Line<P>): Promise<void> {
    const call = beginCall(line)
    try {
      await line.ready
      line.connected = true
    } catch {
      line.failed = true
    } finally {
      this.#endCall(line, call)
    }
  }

  #endCall(line: Line<P>, call: Call): void {
    line.pending.delete(call)
    if (line.retired && line.pending.size === 0) void this.#close(line).catch(() => {})
  }

  #retire(line: Line<P>): void {
    line.retired = true
    if (line.pending.size === 0) void this.#close(line).catch(() => {})
  }

  async #close(line: Line<P>): Promise<void> {
    if (!this.#lines.delete(line)) return
    // A producer that is asked to disconnect while it connects ends up connected.
    await line.ready.catch(() => {})
    await line.producer.disconnect()
  }
}

async function waitUntilReady({ producer, ready }: Line<Connectable>): Promise<void> {
  let waitMs = CONNECT_PATIENCE_MS
  while ((await raceTimeout(ready, waitMs)) === 'late') {
    if (producer.connectionError) throw producer.connectionError
    waitMs = LOOK_AGAIN_MS
  }
}

function beginCall({ pending }: Pick<Line<Connectable>, 'pending'>): Call {
  const call = { begunAt: performance.now() }
  pending.add(call)
  return call
}

function isStuck({ failed, pending }: Pick<Line<Connectable>, 'failed' | 'pending'>): boolean {
  const [oldest] = pending
  return failed || (oldest !== undefined && performance.now() - oldest.begunAt > STUCK_MS)
}
