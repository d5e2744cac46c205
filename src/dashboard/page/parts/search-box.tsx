// The one search box, on every view: an id anywhere in the text opens its event. `/` brings the focus here.
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get } from '../data/client.ts'
import { formatFilter } from '../data/event-filter.ts'
import { goTo, linkTo, linkToEvent } from '../data/route.ts'
import { readSearch } from '../data/search.ts'
import { Icon } from './icon.tsx'

export function SearchBox() {
  const box = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest('input, select, textarea, dialog')
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      box.current?.focus()
      box.current?.select()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])

  return (
    <form
      class="search"
      role="search"
      aria-label="Find an event"
      onSubmit={(event) => {
        event.preventDefault()
        if (text.trim()) void find(text).then(() => setText(''))
      }}
    >
      <Icon name="search" />
      <input
        ref={box}
        type="search"
        aria-label="Event id, aggregate, type:… or topic:…"
        placeholder="Event id, aggregate, type:… or topic:…"
        title="Paste an event id, or write an aggregate such as order/42, type:order.placed, topic:orders, status:dead"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  )
}

/** Aggregates often have UUIDs too, so an id that no event has may be one of theirs. */
async function find(text: string): Promise<void> {
  const search = readSearch(text)
  if (search.kind === 'filter') return goTo(linkTo('events', formatFilter(search.filter)))
  const isEvent = await get(`events/${search.id}`).then(
    () => true,
    (error: unknown) => !(error instanceof ApiError && error.status === 404),
  )
  if (isEvent) return goTo(linkToEvent(search.id))
  goTo(linkTo('events', new URLSearchParams({ aggregateId: search.id }).toString()))
}
