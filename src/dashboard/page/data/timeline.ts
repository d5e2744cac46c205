// The history of one event as the table knows it: the row keeps the last attempt alone, so earlier ones are a number.
import type { EventAnswer } from '../../api.ts'
import { duration } from './format.ts'

export interface Step {
  readonly name: string
  /** null: the time is unknown. */
  readonly at: string | null
  readonly kind: 'done' | 'current' | 'bad' | 'waiting'
  readonly detail: string | null
  /** Where the page shows more of what it waits for. */
  readonly isOfTopics?: true
}

/** Of a dead letter that an event may wait for: not every server of the page knows the setting. */
export const ONLY_WITH_HOLD = "but only with onDeadLetter: 'hold'"

export function stepsOf(event: EventAnswer, now: number): Step[] {
  return [
    { name: 'Emitted', at: event.occurredAt, kind: 'done', detail: null },
    { name: 'Saved', at: event.createdAt, kind: 'done', detail: 'in the transaction that made it' },
    ...attemptsOf(event),
    ...outcomeOf(event, now),
  ]
}

function attemptsOf(event: EventAnswer): Step[] {
  const { attempts, maxAttempts, error, lastAttemptAt } = event
  if (attempts === 0 && error === null) return []
  const name =
    attempts === 0 ? 'Not sent' : attempts === 1 ? 'Tried' : `Tried ${attempts} times, last`
  const left = `attempt ${attempts} of ${maxAttempts}`
  if (error === null) return [{ name, at: lastAttemptAt, kind: 'done', detail: left }]
  const detail = event.status === 'published' ? `${left}; the error before: ${error}` : error
  return [{ name, at: lastAttemptAt, kind: event.status === 'published' ? 'done' : 'bad', detail }]
}

function outcomeOf(event: EventAnswer, now: number): Step[] {
  const { status, createdAt, publishedAt, availableAt, updatedAt, workerId, deliverAt } = event
  if (status === 'published') {
    const took = publishedAt
      ? `${duration(Date.parse(publishedAt) - Date.parse(deliverAt ?? createdAt))} after it was ${deliverAt ? 'due' : 'saved'}`
      : null
    return [{ name: 'Published', at: publishedAt, kind: 'done', detail: took }]
  }
  if (status === 'dead_letter') {
    const detail = 'Given up. It waits for a person to retry or discard it.'
    return [{ name: 'Dead letter', at: updatedAt, kind: 'bad', detail }]
  }
  if (status === 'scheduled') {
    return [{ name: 'Due', at: deliverAt, kind: 'waiting', detail: 'Scheduled for then.' }]
  }
  if (event.isPaused) {
    const detail = 'It goes out when the pause ends.'
    return [{ name: 'Waits for a pause', at: null, kind: 'current', detail, isOfTopics: true }]
  }
  if (event.isLeased) {
    const detail = `held by ${workerId ?? 'an instance'}, at the latest until then`
    return [{ name: 'Being sent', at: availableAt, kind: 'current', detail }]
  }
  if (event.behind.length > 0) {
    const isCertain = event.behind.some((one) => one.status !== 'dead_letter')
    const detail = isCertain
      ? 'An earlier event of its lane is not finished.'
      : `A dead letter of its lane holds it back, ${ONLY_WITH_HOLD}.`
    return [{ name: 'Waits for its turn', at: null, kind: 'waiting', detail }]
  }
  const isDue = Date.parse(availableAt) <= now
  if (isDue && event.waitsFor !== null) {
    const name = `Waits for its ${event.waitsFor}`
    const detail = 'It is out of reach. The event goes out by itself once it is back.'
    return [{ name, at: null, kind: 'waiting', detail, isOfTopics: true }]
  }
  const detail = isDue ? 'Due: the fallback takes it next.' : null
  return [{ name: 'Next attempt', at: availableAt, kind: 'waiting', detail }]
}
