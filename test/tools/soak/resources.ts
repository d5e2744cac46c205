// What a process holds: memory after a collection, handles by kind, and listeners wherever they can be counted.
// It runs inside the service, so that the numbers are the service's.
import type { EventEmitter as NodeEmitter } from 'node:events'
import { EventEmitter } from 'eventemitter3'

export type Counts = Record<string, number>

export interface Memory {
  readonly heapBytes: number
  /** Buffers and the like, outside of the heap. */
  readonly externalBytes: number
  readonly rssBytes: number
}

// outbox.events does not tell how many listen, so the emitters behind it are noted when they are first used.
const emitters = new Set<EventEmitter>()
const { on: add } = EventEmitter.prototype as { on: (...given: ListenerArguments) => EventEmitter }
EventEmitter.prototype.on = function on(...given: ListenerArguments) {
  emitters.add(this)
  return add.apply(this, given)
}

type ListenerArguments = Parameters<EventEmitter['on']>

/** Without what nobody refers to any more; needs --expose-gc. */
export function measureMemory(): Memory {
  if (!globalThis.gc) throw new Error('memory can only be measured with --expose-gc')
  globalThis.gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heapBytes: heapUsed, externalBytes: external, rssBytes: rss }
}

/** What keeps the process alive, by kind. */
export function countHandles(): Counts {
  const counts: Counts = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

export function countListeners(): Counts {
  return {
    process: countOf(process),
    outbox: [...emitters].map(countOf).reduce((sum, count) => sum + count, 0),
    sockets: openSockets()
      .map(countOf)
      .reduce((sum, count) => sum + count, 0),
  }
}

type Emitter = Pick<NodeEmitter, 'eventNames' | 'listenerCount'> | EventEmitter

function countOf(emitter: Emitter): number {
  const names = emitter.eventNames()
  return names.reduce((sum, name) => sum + emitter.listenerCount(name as string), 0)
}

// Not documented, but the only way to the sockets of the drivers. Without it there is nothing to count.
function openSockets(): NodeEmitter[] {
  const { _getActiveHandles } = process as { _getActiveHandles?: () => unknown[] }
  const handles = _getActiveHandles?.call(process) ?? []
  return handles.filter((handle): handle is NodeEmitter => {
    return typeof (handle as Partial<NodeEmitter> | null)?.eventNames === 'function'
  })
}
