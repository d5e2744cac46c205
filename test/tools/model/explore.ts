// Walks through every world that can be reached, shortest ways first, and asks of each whether all could still
// end well. A counterexample is the list of moves that leads to it.
import { hash } from 'node:crypto'
import { describeWorld } from './describe.ts'
import { Moves } from './moves.ts'
import { copyWorld, newWorld, type Property, type Setting, Violation, type World } from './world.ts'

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
  const names = new Names()
  // By id. Millions of worlds fit into memory as numbers, not as objects.
  const cameFrom: number[] = []
  const cameBy: number[] = []
  const queue: string[] = []
  /** The moves that are part of a world in which nothing goes wrong from now on. */
  const lucky = { from: [] as number[], to: [] as number[] }
  const done: number[] = []
  let moves = 0

  const enter = (text: string, from: number, name: string): number => {
    const digest = hash('md5', text, 'binary')
    const known = ids.get(digest)
    if (known !== undefined) return known
    const id = ids.size
    ids.set(digest, id)
    cameFrom.push(from)
    cameBy.push(names.idOf(name))
    queue.push(text)
    return id
  }
  const trace = (id: number): string[] => {
    const moved: string[] = []
    for (let at = id; at > 0; at = cameFrom[at]!) moved.push(names.of(cameBy[at]!))
    return moved.toReversed()
  }

  enter(describeWorld(newWorld(setting), setting), -1, '')
  for (let id = 0; id < queue.length; id += 1) {
    const text = queue[id]!
    queue[id] = ''
    const world = JSON.parse(text) as World
    if (possible.isDone(world)) done.push(id)
    for (const { name, faults, make } of possible.from(world)) {
      const next = copyWorld(world)
      next.faultsLeft -= faults
      try {
        make(next)
      } catch (error) {
        if (!(error instanceof Violation)) throw error
        const found = { property: error.property, moves: [...trace(id), name] }
        return { worlds: ids.size, moves, counterexample: found }
      }
      moves += 1
      const to = enter(describeWorld(next, setting), id, name)
      if (faults > 0 || to === id) continue
      lucky.from.push(id)
      lucky.to.push(to)
    }
    if (id % 1_000 === 0) onProgress(id, ids.size)
  }
  const stuck = findStuck(ids.size, done, lucky)
  const counterexample =
    stuck === null ? null : ({ property: 'nothing is lost', moves: trace(stuck) } as const)
  return { worlds: ids.size, moves, counterexample }
}

/** A world from which no luck leads to the end of all deliveries. */
function findStuck(
  worlds: number,
  done: readonly number[],
  lucky: { readonly from: readonly number[]; readonly to: readonly number[] },
): number | null {
  // The moves in the order of the worlds that they lead to.
  const first = new Uint32Array(worlds + 1)
  for (const to of lucky.to) first[to + 1]! += 1
  for (let id = 0; id < worlds; id += 1) first[id + 1]! += first[id]!
  const filled = first.slice()
  const before = new Uint32Array(lucky.from.length)
  for (const [n, to] of lucky.to.entries()) before[filled[to]!++] = lucky.from[n]!

  const endsWell = new Uint8Array(worlds)
  const reached = [...done]
  for (const id of reached) endsWell[id] = 1
  for (let id = reached.pop(); id !== undefined; id = reached.pop()) {
    for (const from of before.subarray(first[id], first[id + 1])) {
      if (endsWell[from]) continue
      endsWell[from] = 1
      reached.push(from)
    }
  }
  const stuck = endsWell.indexOf(0)
  return stuck === -1 ? null : stuck
}

/** Texts as numbers. */
class Names {
  readonly #ids = new Map<string, number>()
  readonly #names: string[] = []

  idOf(name: string): number {
    const known = this.#ids.get(name)
    if (known !== undefined) return known
    this.#ids.set(name, this.#names.length)
    this.#names.push(name)
    return this.#names.length - 1
  }

  of(id: number): string {
    return this.#names[id]!
  }
}
