// Is it well, and if not, what is it? One word and one sentence for the whole outbox.
import type { Overview } from '../../api.ts'
import type { ApiError } from './client.ts'
import { countOf, duration, number, toSentence } from './format.ts'

type State = 'loading' | 'idle' | 'well' | 'attention' | 'trouble' | 'paused' | 'unreachable'

export interface Verdict {
  readonly state: State
  /** `Trouble` */
  readonly word: string
  readonly sentence: string
}

export function judge(overview: Overview | null, error: ApiError | null): Verdict {
  if (error) return unreachable(error)
  if (!overview) return { state: 'loading', word: 'Looking', sentence: 'Waiting for the server.' }
  const errors = overview.findings.filter(({ severity }) => severity === 'error').length
  const warnings = overview.findings.filter(({ severity }) => severity === 'warning').length
  if (errors > 0) {
    const more = warnings > 0 ? ` and ${plural(warnings, 'warning')}` : ''
    return { state: 'trouble', word: 'Trouble', sentence: `${plural(errors, 'problem')}${more}.` }
  }
  if (overview.pauses.length > 0) {
    return { state: 'paused', word: 'Paused', sentence: describePauses(overview) }
  }
  if (warnings > 0) {
    const sentence = `Events go out, with ${plural(warnings, 'warning')}.`
    return { state: 'attention', word: 'Attention', sentence }
  }
  if (overview.pending.count === 0 && overview.instances.length === 0) {
    return { state: 'idle', word: 'Idle', sentence: 'No event waits, and no instance runs.' }
  }
  return { state: 'well', word: 'Well', sentence: describeCalm(overview) }
}

function unreachable(error: ApiError): Verdict {
  const word =
    error.status === 503 ? 'No database' : error.status === 403 ? 'Refused' : 'Unreachable'
  return { state: 'unreachable', word, sentence: error.message }
}

function describePauses({ pauses, pending }: Overview): string {
  const waiting = countOf(pending, 'event waits', 'events wait')
  if (pauses.some(({ topic }) => topic === null)) return `Nothing is sent; ${waiting}.`
  const topics = pauses.map(({ topic }) => topic)
  const named = topics.length > 3 ? `${topics.length} topics` : topics.join(', ')
  return `Nothing is sent to ${named}; ${waiting} in all.`
}

function describeCalm({ pending, oldestMs, instances }: Overview): string {
  const running = instances.filter(({ isLost }) => !isLost).length
  const runs = `${plural(running, 'instance')} ${running === 1 ? 'runs' : 'run'}`
  if (pending.count === 0) return `No event waits, and ${runs}.`
  const waiting = countOf(pending, 'event waits', 'events wait')
  const oldest = oldestMs === null ? '' : `, the oldest for ${duration(oldestMs)}`
  return `${toSentence(waiting)}${oldest}, and ${runs}.`
}

function plural(value: number, noun: string): string {
  return `${number(value)} ${noun}${value === 1 ? '' : 's'}`
}
