// Which view is shown: everything after `#` in the address, so that the server needs to know one page only.
import { useEffect, useState } from 'preact/hooks'

export const VIEWS = ['overview', 'events', 'failures', 'topics', 'instances', 'doctor'] as const
export type ViewName = (typeof VIEWS)[number]

export interface Route {
  readonly view: ViewName
  /** Of one event. */
  readonly id: string | null
  readonly query: string
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  const [name = '', id] = path.split('/')
  const view = VIEWS.find((one) => one === name) ?? 'overview'
  return { view, id: id ? decode(id) : null, query }
}

/** An address may have been cut off or edited: then it names no event. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function linkTo(view: ViewName, query = ''): string {
  return `#/${view}${query ? `?${query}` : ''}`
}

export function linkToEvent(id: string): string {
  return `#/events/${encodeURIComponent(id)}`
}

export function goTo(link: string): void {
  location.hash = link
}

/** For a filter that changes with every key: the way back leads to the view before. */
export function replaceAddress(link: string): void {
  history.replaceState(null, '', link)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const onChange = () => setHash(location.hash)
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return parseRoute(hash)
}
