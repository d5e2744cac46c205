// A part of a view with a heading of its own.
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

export function Panel(props: {
  title: string
  note?: ComponentChildren
  tools?: ComponentChildren
  class?: string
  children: ComponentChildren
}) {
  const id = useId()
  return (
    <section class={`panel ${props.class ?? ''}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{props.title}</h2>
        {props.note && <p class="panel-note">{props.note}</p>}
        {props.tools && <div class="panel-tools">{props.tools}</div>}
      </header>
      {props.children}
    </section>
  )
}

export function ViewHead(props: {
  title: string
  lead?: ComponentChildren
  children?: ComponentChildren
}) {
  return (
    <div class="view-head">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.lead && <p class="lead">{props.lead}</p>}
      </div>
      {props.children && <div class="actions">{props.children}</div>}
    </div>
  )
}
