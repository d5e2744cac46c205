// What a person can do, in the words of the dialog that asks first: how many events it touches, what will happen, what happened.
import type {
  Changed,
  ChangeRequest,
  FailureName,
  PauseAnswer,
  PauseRequest,
  Preview,
  PreviewRequest,
  Rerouted,
  RerouteRequest,
  Selection,
} from '../../api.ts'
import { post } from './client.ts'
import { countOf, number } from './format.ts'

export interface Act {
  readonly title: string
  /** What the server counts before it asks. */
  readonly preview: PreviewRequest
  /** How many, and of what. */
  readonly about: (preview: Preview) => string
  readonly consequence: string
  readonly button: string
  /** Done although nothing is counted, as a pause is. */
  readonly worksOnNothing?: boolean
  /** A text that it wants to know, such as why. */
  readonly field?: {
    readonly label: string
    readonly isRequired: boolean
    readonly choices?: (preview: Preview) => readonly string[]
  }
  /** What may be wrong with it, or with the text; null if nothing is. */
  readonly warning?: (preview: Preview, text: string) => string | null
  /** To be typed first, because there is no way back. */
  readonly word?: string
  /** Does it; returns what to tell. */
  run(preview: Preview, text: string): Promise<string>
}

export function retry(selection: Selection, where: string): Act {
  const nouns = nounsOf(selection.status)
  return {
    title: `Retry ${where}`,
    preview: { act: 'retry', selection },
    about: (preview) => `${countOf(preview, ...nouns)}${describe(selection)}`,
    consequence: RETRIED[selection.status ?? 'both'],
    button: 'Retry',
    async run({ asOf }) {
      const request: ChangeRequest = { selection, asOf }
      const { count } = await post<Changed>('retry', request)
      return `${number(count)} ${count === 1 ? 'event goes' : 'events go'} out again.`
    },
  }
}

export function discard(selection: Selection, where: string): Act {
  const nouns = nounsOf(selection.status)
  return {
    title: `Discard ${where}`,
    preview: { act: 'discard', selection },
    about: (preview) => `${countOf(preview, ...nouns)}${describe(selection)}`,
    consequence:
      'They are deleted for good and never sent. Events that were held behind them go on.',
    button: 'Discard',
    word: 'discard',
    async run({ asOf }) {
      const request: ChangeRequest = { selection, asOf }
      const { count } = await post<Changed>('discard', request)
      return `${number(count)} ${count === 1 ? 'event was' : 'events were'} discarded.`
    },
  }
}

export function pause(topic: string | null): Act {
  return {
    title: topic === null ? 'Pause everything' : `Pause ${topic}`,
    preview: { act: 'pause', topic },
    about: (preview) => countOf(preview, 'unsent event', 'unsent events'),
    consequence: `No instance sends to ${topic ?? 'any topic'} until it is resumed; all obey within 15 seconds. Events are saved as usual and wait. None is lost, and no attempts are used up.`,
    button: 'Pause',
    worksOnNothing: true,
    field: { label: 'Reason, shown to others', isRequired: false },
    warning: ({ isUnknownTopic }) =>
      isUnknownTopic
        ? `No waiting or recent event is for ${topic}, and no running instance names it. Check the spelling.`
        : null,
    async run(_, reason) {
      const request: PauseRequest = reason ? { topic, reason } : { topic }
      const { changed } = await post<PauseAnswer>('pause', request)
      return `${topic ?? 'Everything'} ${changed ? 'is' : 'was already'} paused.`
    },
  }
}

export function resume(topic: string | null): Act {
  return {
    title: topic === null ? 'Resume everything' : `Resume ${topic}`,
    preview: { act: 'pause', topic },
    about: (preview) => countOf(preview, 'unsent event', 'unsent events'),
    consequence:
      topic === null
        ? 'The waiting events go out, in order. Topics that were paused by name stay paused.'
        : 'The waiting events go out, in order.',
    button: 'Resume',
    worksOnNothing: true,
    async run() {
      const { changed } = await post<PauseAnswer>('resume', { topic })
      return `${topic ?? 'Everything'} ${changed ? 'goes on' : 'was not paused'}.`
    },
  }
}

export function moveTo(topic: string): Act {
  return {
    title: `Move the events of ${topic}`,
    preview: { act: 'reroute', topic },
    about: (preview) => countOf(preview, 'unsent event', 'unsent events'),
    consequence:
      'Correct the application first, or new events go to the old topic. The waiting ones go to the new one, at once and in their order among themselves. Later events of the same aggregates may have gone out before them. Dead letters stay.',
    button: 'Move',
    field: {
      label: 'The right topic',
      isRequired: true,
      choices: ({ topics = [] }) => topics.filter((one) => one !== topic),
    },
    // The same for each letter, so that a screen reader says it once.
    warning: ({ topics }, to) =>
      to === '' || !topics || topics.includes(to)
        ? null
        : 'No running instance names this topic, and no recent event is for it. Check the spelling.',
    async run(_, to) {
      const request: RerouteRequest = { from: topic, to }
      const { moved, held } = await post<Rerouted>('reroute', request)
      const left =
        held > 0
          ? ` ${number(held)} ${held === 1 ? 'was' : 'were'} being sent; move ${held === 1 ? 'it' : 'those'} again in a moment.`
          : ''
      return `${number(moved)} ${moved === 1 ? 'event goes' : 'events go'} to ${to}.${left}`
    },
  }
}

export function purge(): Act {
  return {
    title: 'Purge old events',
    preview: { act: 'purge' },
    about: (preview) => countOf(preview, 'event', 'events'),
    consequence: 'Events that are past their retention are deleted for good, in batches.',
    button: 'Purge',
    word: 'purge',
    async run() {
      const { count } = await post<Changed>('purge', {})
      return `${number(count)} ${count === 1 ? 'event was' : 'events were'} deleted.`
    },
  }
}

const RETRIED = {
  dead_letter: 'They get all their attempts again and go out at once.',
  failed: 'They are tried now, with the attempts that they have left.',
  both: 'Dead letters get all their attempts again; failing events are tried now, with the attempts that they have left.',
}

/** Which events, in words: a list on the page may have changed its order since the button was pressed. */
function describe({ type, topic, aggregateType, aggregateId, error, ...rest }: Selection): string {
  const parts = [
    type,
    topic && `to ${topic}`,
    aggregateType && `of ${aggregateType}`,
    aggregateId && `with the id ${aggregateId}`,
    error && `with the error “${error}”`,
    rest.id && rest.id.length > 1 && 'those that you ticked',
    rest.savedSince && `saved since ${rest.savedSince}`,
    rest.savedBefore && `saved before ${rest.savedBefore}`,
  ].filter((part) => part !== undefined && part !== '' && part !== false)
  return parts.length > 0 ? `: ${parts.join(' ')}` : ''
}

function nounsOf(status: FailureName | undefined): [string, string] {
  if (status === 'dead_letter') return ['dead letter', 'dead letters']
  if (status === 'failed') return ['failing event', 'failing events']
  return ['dead letter or failing event', 'dead letters and failing events']
}
