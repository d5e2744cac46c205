// What is paused, and the way to pause: a topic, or everything. And where events wait, which can be moved to another topic.
import { useState } from 'preact/hooks'
import type { PauseShown } from '../../api.ts'
import { moveTo, pause, resume } from '../data/acts.ts'
import { linkTo } from '../data/route.ts'
import { knownTopics, useSession } from '../data/session.ts'
import { Icon } from '../parts/icon.tsx'
import { Loaded } from '../parts/notice.tsx'
import { Panel, ViewHead } from '../parts/panel.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Time } from '../parts/time.tsx'
import { TopicTable } from './topic-table.tsx'

export function TopicsView() {
  const { overview, mayAct, ask } = useSession()
  const topics = knownTopics(overview.data)
  const run = (act: ReturnType<typeof pause>) =>
    void ask(act).then((isDone) => isDone && overview.refresh())
  return (
    <>
      <ViewHead
        title="Topics"
        lead="A paused topic gets no events until it is resumed. Events are saved as usual and wait."
      >
        {mayAct && (
          <button type="button" class="button" onClick={() => run(pause(null))}>
            Pause everything…
          </button>
        )}
      </ViewHead>
      <Panel title="Paused">
        <Loaded polled={overview} what="the pauses">
          {({ pauses }) =>
            pauses.length === 0 ? (
              <p class="calm">
                <Icon name="well" /> Nothing is paused.
              </p>
            ) : (
              <Table
                caption="Pauses"
                items={pauses}
                keyOf={({ topic }) => JSON.stringify(topic)}
                columns={columnsOf(mayAct ? (topic) => run(resume(topic)) : null)}
              />
            )
          }
        </Loaded>
      </Panel>
      {topics.length > 0 && overview.data && (
        <Panel
          title="Known topics"
          note="of running instances, where events wait, and what is paused"
        >
          <TopicTable
            overview={overview.data}
            act={
              mayAct
                ? {
                    pause: (topic) => run(pause(topic)),
                    move: (topic) => run(moveTo(topic)),
                  }
                : null
            }
          />
        </Panel>
      )}
      {mayAct && (
        <Panel title={topics.length > 0 ? 'Pause another topic' : 'Pause a topic'}>
          <PauseForm topics={topics} pause={(topic) => run(pause(topic))} />
        </Panel>
      )}
    </>
  )
}

function columnsOf(end: ((topic: string | null) => void) | null): Column<PauseShown>[] {
  const columns: Column<PauseShown>[] = [
    {
      name: 'Topic',
      isBare: true,
      kind: 'main',
      cell: ({ topic }) => (
        <>
          <span class="badge badge-paused">
            <Icon name="paused" />
            Paused
          </span>{' '}
          {topic === null ? (
            <strong>Everything</strong>
          ) : (
            <a href={linkTo('events', new URLSearchParams({ topic }).toString())}>{topic}</a>
          )}
        </>
      ),
    },
    { name: 'Since', cell: ({ since }) => <Time at={since} /> },
    { name: 'By', cell: ({ by }) => by ?? '–' },
    { name: 'Reason', cell: ({ reason }) => reason ?? '–' },
  ]
  if (!end) return columns
  const cell = ({ topic }: PauseShown) => (
    <button
      type="button"
      class="button button-small"
      aria-label={`Resume ${topic ?? 'everything'}`}
      onClick={() => end(topic)}
    >
      Resume…
    </button>
  )
  return [...columns, { name: 'Action', cell }]
}

function PauseForm(props: { topics: readonly string[]; pause: (topic: string) => void }) {
  const [topic, setTopic] = useState('')
  return (
    <form
      class="inline-form"
      onSubmit={(event) => {
        event.preventDefault()
        if (topic.trim()) props.pause(topic.trim())
      }}
    >
      <label class="field">
        Topic
        <input
          value={topic}
          list="topics-to-pause"
          required
          autocapitalize="none"
          spellcheck={false}
          onInput={(event) => setTopic(event.currentTarget.value)}
        />
      </label>
      <datalist id="topics-to-pause">
        {props.topics.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button type="submit" class="button">
        Pause…
      </button>
    </form>
  )
}
