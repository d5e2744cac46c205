// What to do about a finding, in the words of the page: its links and buttons take the place of commands. For the overview and
// the doctor alike.
import type { FindingKind } from '../upkeep/doctor/finding.ts'
import type { Finding } from './api.ts'

type Remedy = Pick<Finding, 'remedy' | 'link'>

type KindWithPlace = Exclude<FindingKind, 'history' | 'lost-instance'>

export const REMEDIES: Readonly<Record<KindWithPlace, Remedy>> = {
  'no-instance': {
    remedy:
      'Start the application, or run aftercommit relay with your publishers, handlers included.',
    link: { to: 'instances', query: '' },
  },
  circuit: {
    remedy:
      'Fix the broker, the topic or the credentials, as the error says. Events wait, and go out by themselves. If the name of a topic is wrong, move its events to another topic.',
    link: { to: 'topics', query: '' },
  },
  unrouted: {
    remedy:
      "Add the topic to the routes of routerPublisher(), or set its option 'otherwise'. If the name of the topic is wrong, move its events to another topic.",
    link: { to: 'topics', query: '' },
  },
  lag: {
    remedy: 'Look at the oldest events, and at what they wait for.',
    link: { to: 'events', query: queryOf({ status: 'pending,failed', order: 'oldest' }) },
  },
  dead: {
    remedy:
      'Look at the failure groups for the causes, fix them, then retry or discard the events.',
    link: { to: 'groups', query: '' },
  },
  paused: {
    remedy: 'Resume it when the reason is gone. Its events wait in the table.',
    link: { to: 'topics', query: '' },
  },
}

/** Where published events are past a retention that is known, the page can purge. */
export const PURGE_HERE: Remedy = {
  remedy:
    "Purge them on the page of the doctor. An instance with the option 'cleanup' deletes them by itself; if one has it, look in its log for the reason why it does not keep up.",
  link: null,
}

export function queryOf(fields: Readonly<Record<string, string>>): string {
  return new URLSearchParams(fields).toString()
}

/** A text that ends in another library's error keeps its end. */
export function toSentence(text: string): string {
  const begun = `${text[0]!.toUpperCase()}${text.slice(1)}`
  return /[.!?\]]$/.test(begun) ? begun : `${begun}.`
}
