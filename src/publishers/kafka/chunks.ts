// Cuts the events of one partition into requests that a broker accepts.
import type { Outgoing } from './batch.ts'

/** Cuts events into requests. One alone is a request whatever its size, so it is not measured. */
export function chunksOf(lane: readonly Outgoing[], maxBytes: number): (readonly Outgoing[])[] {
  if (lane.length === 1) return [lane]
  const chunks: Outgoing[][] = []
  let room = 0
  for (const outgoing of lane) {
    const bytes = bytesOf(outgoing)
    if (chunks.length === 0 || bytes > room) {
      chunks.push([])
      room = maxBytes
    }
    chunks.at(-1)!.push(outgoing)
    room -= bytes
  }
  return chunks
}

/**
 * At most so many. Only the value is measured: keys and headers are many short texts, and no character takes more than three
 * bytes.
 */
function bytesOf({ event, message: { value, headers } }: Outgoing): number {
  let characters = event.aggregateId.length
  for (const name in headers) characters += name.length + headers[name]!.length
  return Buffer.byteLength(value) + 3 * characters
}
