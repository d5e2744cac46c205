// Open circuits: which destination fails, seen by which instances, since when and why.
import type { InstanceShown } from '../../api.ts'
import { duration } from '../data/format.ts'
import { Icon } from '../parts/icon.tsx'

export interface CircuitShown {
  readonly publisher: string
  readonly topic: string | null
  readonly forMs: number
  readonly error: string
  readonly seenBy: readonly string[]
}

/** One line for each destination, however many instances see it. */
export function circuitsOf(instances: readonly InstanceShown[]): CircuitShown[] {
  const byPlace = new Map<string, CircuitShown>()
  for (const { workerId, isLost, circuits } of instances) {
    if (isLost) continue
    for (const circuit of circuits) {
      const key = JSON.stringify([circuit.publisher, circuit.topic])
      const known = byPlace.get(key)
      const longest = known && known.forMs > circuit.forMs ? known : circuit
      byPlace.set(key, { ...longest, seenBy: [...(known?.seenBy ?? []), workerId] })
    }
  }
  return [...byPlace.values()].toSorted((a, b) => b.forMs - a.forMs)
}

export function CircuitList({ circuits }: { circuits: readonly CircuitShown[] }) {
  return (
    <ul class="lines">
      {circuits.map(({ publisher, topic, forMs, error, seenBy }) => (
        <li key={`${publisher} ${topic}`} class="is-bad">
          <Icon name="trouble" />
          <p>
            <strong>{topic ?? 'The whole broker'}</strong> ({publisher}) for {duration(forMs)}, seen
            by {seenBy.length === 1 ? seenBy[0] : `${seenBy.length} instances`}
            <span class="soft error-text">{error}</span>
          </p>
        </li>
      ))}
    </ul>
  )
}
