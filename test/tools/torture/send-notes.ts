// Notes of when each send began, in a file that outlives the worker that wrote them.
import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Publisher } from '../../../src/index.ts'
import type { SendNote } from './pauses.ts'
import type { ScheduledSend } from './scheduled-oracle.ts'
import { SCHEDULED_HEADER } from './scheduling.ts'

type Note = SendNote & { readonly scheduled: readonly ScheduledSend[] }

export function noteSends(publisher: Publisher, file: string): Publisher {
  return {
    ...publisher,
    publish(events, rules) {
      const topics = [...new Set(events.map(({ topic }) => topic))]
      const scheduled = events
        .filter(({ headers }) => SCHEDULED_HEADER in headers)
        .map(({ id, leasedAt }): ScheduledSend => ({ id, claimedMs: leasedAt.getTime() }))
      const note: Note = { pid: process.pid, at: Date.now(), topics, scheduled }
      appendFileSync(file, `${JSON.stringify(note)}\n`)
      return publisher.publish(events, rules)
    },
  }
}

export async function readSendNotes(file: string): Promise<Note[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as Note)
}
