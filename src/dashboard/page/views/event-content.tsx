// Payload and headers, which hold the application's data: loaded on a click and never before, and shown as text.
import { useState } from 'preact/hooks'
import type { EventContent } from '../../api.ts'
import { type ApiError, get } from '../data/client.ts'
import { prettyJson } from '../data/format.ts'
import { asApiError } from '../data/poll.ts'
import { CopyButton } from '../parts/copy.tsx'
import { Failed } from '../parts/notice.tsx'
import { Panel } from '../parts/panel.tsx'

export function EventContentPanel({ id }: { id: string }) {
  const [content, setContent] = useState<EventContent | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const load = () => {
    setError(null)
    get<EventContent>(`events/${encodeURIComponent(id)}/content`).then(
      setContent,
      (refused: unknown) => setError(asApiError(refused)),
    )
  }
  const toggle = (
    <button
      type="button"
      class="button"
      aria-expanded={content !== null}
      onClick={() => (content ? setContent(null) : load())}
    >
      {content ? 'Hide' : 'Show payload and headers'}
    </button>
  )
  return (
    <Panel title="Content" note={content?.isRedacted && 'redacted by the server'} tools={toggle}>
      {error ? (
        <Failed error={error} retry={load} />
      ) : content ? (
        <Content content={content} />
      ) : (
        <p class="calm soft">Payload and headers may hold personal data, so they are not loaded.</p>
      )}
    </Panel>
  )
}

function Content({ content }: { content: EventContent }) {
  const headers = Object.entries(content.headers)
  return (
    <div class="content">
      <h3>
        Payload <CopyButton text={content.payload} what="the payload" />
      </h3>
      <pre tabIndex={0} aria-label="Payload">
        {prettyJson(content.payload)}
      </pre>
      <h3>Headers</h3>
      {headers.length === 0 ? (
        <p class="soft">None.</p>
      ) : (
        <dl class="facts">
          {headers.map(([name, value]) => [
            <dt key={name}>{name}</dt>,
            <dd key={`${name} value`}>
              <code>{value}</code>
            </dd>,
          ])}
        </dl>
      )}
    </div>
  )
}
