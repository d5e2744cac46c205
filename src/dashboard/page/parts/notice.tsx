// What is shown instead of data: none, not loaded yet, or not available.
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../data/client.ts'
import type { Polled } from '../data/poll.ts'
import { Icon, type IconName } from './icon.tsx'

export function Notice(props: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="notice">
      <Icon name={props.icon} />
      <p class="notice-title">{props.title}</p>
      {props.children && <p>{props.children}</p>}
    </div>
  )
}

export function Loading({ what }: { what: string }) {
  return (
    <div class="notice" role="status">
      <Icon name="loading" />
      <p class="notice-title">Loading {what}…</p>
    </div>
  )
}

export function Failed({ error, retry }: { error: ApiError; retry: () => void }) {
  return (
    <div class="notice notice-bad" role="alert">
      <Icon name="unreachable" />
      <p class="notice-title">{error.message}</p>
      <button type="button" class="button" onClick={retry}>
        Try again
      </button>
    </div>
  )
}

/** Shows the data if there is any, however old, and the reason if there is none. */
export function Loaded<T>(props: {
  polled: Polled<T>
  what: string
  children: (data: T) => ComponentChildren
}) {
  const { data, error, refresh } = props.polled
  if (data !== null) return <>{props.children(data)}</>
  return error ? <Failed error={error} retry={refresh} /> : <Loading what={props.what} />
}
