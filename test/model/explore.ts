// Walks through every world that can be reached, shortest ways first, and asks of each whether all could still
// end well. A counterexample is the list of moves that leads to it.
import { createHash } from 'node:crypto'
import { Moves } from './moves.ts'
import {
  describeWorld,
  newWorld,
  type Property,
  type Setting,
  Violation,
  type World,
} from './world.ts'

export interface Exploration {
  readonly worlds: number
  readonly moves: number
  readonly counterexample: Counterexample | null
}

interface Counterexample {
  /** The promise that was broken. */
  readonly property: Property
  readonly moves: readonly string[]
}

export function explore(
  setting: Setting,
  onProgress: (explored: number, known: number) => void = () => {},
): Exploration {
  const possible = new Moves(setting)
  const ids = new Map<string, number>()
  const cameFrom: { readonly id: number; readonly move: string }[] = []
  const queue: string[] = []
  /** By the world that they lead to: where nothing goes wrong from now on. */
  const luckyFrom: number[][] = []
  const done: number[] = []
  let moves = 0

  const enter = (text: string, from: number, move: string): number => {
    const digest = createHash('md5').update(text).digest('base64')
    const known = ids.get(digest)
    if (known !== undefined) return known
    const id = ids.size
    ids.set(digest, id)
    cameFrom.push({ id: from, move })
    queue.push(text)
    luckyFrom.push([])
    return id
  }
  const trace = (id: number): string[] => {
    const names: string[] = []
    for (let at = id; at > 0; at = cameFrom[at]!.id) names.push(cameFrom[at]!.move)
    return names.toReversed()
  }

  enter(describeWorld(newWorld(setting)), -1, '')
  for (let id = 0; id < queue.length; id += 1) {
    const text = queue[id]!
    queue[id] = ''
    const world = JSON.parse(text) as World
    if (possible.isDone(world)) done.push(id)
    for (const { name, faults, make } of possible.from(world)) {
      const next = JSON.parse(text) as World
      next.faultsLeft -= faults
      try {
        make(next)
      } catch (error) {
        if (!(error instanceof Violation)) throw error
        const found = { property: error.property, moves: [...trace(id), name] }
        return { worlds: ids.size, moves, counterexample: found }
      }
      moves += 1
      const to = enter(describeWorld(next), id, name)
      if (faults === 0) luckyFrom[to]!.push(id)
    }
    if (id % 1_000 === 0) onProgress(id, ids.size)
  }
  const stuck = findStuck(done, luckyFrom)
  const counterexample =
    stuck === null ? null : ({ property: 'nothing is lost', moves: trace(stuck) } as const)
  return { worlds: ids.size, moves, counterexample }
}

/** A world from which no luck leads to the end of all deliveries. */
function findStuck(done: readonly number[], luckyFrom: readonly number[][]): number | null {
  const endsWell = new Uint8Array(luckyFrom.length)
  const reached = [...done]
  for (const id of reached) endsWell[id] = 1
  for (let id = reached.pop(); id !== undefined; id = reached.pop()) {
    for (const before of luckyFrom[id]!) {
      if (endsWell[before]) continue
      endsWell[before] = 1
      reached.push(before)
    }
  }
  const stuck = endsWell.indexOf(0)
  return stuck === -1 ? null : stuck
}
