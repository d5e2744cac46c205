// A table whose rows become cards on a phone. The roles are written out because CSS that changes `display` takes them away.
import type { ComponentChildren } from 'preact'

export interface Column<T> {
  readonly name: string
  readonly cell: (item: T) => ComponentChildren
  /** Stands in the place of the name. */
  readonly head?: ComponentChildren
  /** `number` is set flush right; `main` takes what is left of the line. */
  readonly kind?: 'number' | 'main'
  /** Left out on a phone. */
  readonly isMinor?: boolean
  /** Stands without its name on a phone. */
  readonly isBare?: boolean
}

export function Table<T>(props: {
  caption: string
  columns: readonly Column<T>[]
  items: readonly T[]
  keyOf: (item: T) => string
  class?: string
}) {
  const { columns, items } = props
  const classOf = ({ kind, isMinor, isBare }: Column<T>) =>
    `${kind ? `cell-${kind}` : ''} ${isMinor ? 'minor' : ''} ${isBare ? 'cell-bare' : ''}`
  return (
    // oxlint-disable-next-line jsx-a11y/no-redundant-roles
    <table role="table" class={`table ${props.class ?? ''}`}>
      <caption class="visually-hidden">{props.caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.name} role="columnheader" scope="col" class={classOf(column)}>
              {column.head ?? column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {items.map((item) => (
          <tr key={props.keyOf(item)} role="row">
            {columns.map((column) => (
              <td key={column.name} role="cell" class={classOf(column)} data-name={column.name}>
                {column.cell(item)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
