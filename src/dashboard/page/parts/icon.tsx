// Shapes of 16 by 16, drawn with the colour of the text beside them. They repeat a word, so a screen reader skips them.
const SHAPES = {
  overview: 'M1.5 8.5h3l2-5.5 3 10 2-4.5h3',
  events: 'M5.5 4h8.5M5.5 8h8.5M5.5 12h8.5M2 4h.5M2 8h.5M2 12h.5',
  failures: 'M8 2 14.5 13.5h-13ZM8 6.5v3.2M8 11.6v.1',
  topics: 'M2 4.5h12M2 8h12M2 11.5h12M5 3v3M11 6.5v3M7 10v3',
  instances: 'M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.1M4.5 11h.1',
  doctor: 'M6.5 1.8h3v4.7h4.7v3H9.5v4.7h-3V9.5H1.8v-3h4.7z',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.3 10.3 14 14',
  sun: 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3Z',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  right: 'M6 3.5 10.5 8 6 12.5',
  down: 'M8 3v9.5M4 8.8l4 4 4-4',
  up: 'M8 13V3.5M4 7.2l4-4 4 4',
  level: 'M2.5 8h11',
  well: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13M5 8.3l2.1 2.1L11.2 6',
  attention: 'M8 1.8 14.8 13.8H1.2ZM8 6.2v3.4M8 11.5v.1',
  trouble: 'M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3ZM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4',
  info: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13M8 7.4v3.8M8 4.8v.1',
  paused: 'M2 2h12v12H2zM6.3 5.5v5M9.7 5.5v5',
  unreachable: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13M3.4 12.6 12.6 3.4',
  idle: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13M5 8h6',
  loading: 'M8 1.5a6.5 6.5 0 1 1-6.5 6.5',
  scheduled: 'M2 3h12v11H2zM2 6.5h12M5.5 1.5v3M10.5 1.5v3',
  pending: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M8 5v3.2l2.2 1.5',
  failed: 'M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 1.5v3h-3',
  published: 'M2.5 8.5 6 12l7.5-8',
  dead_letter: 'M2.5 2.5h11v11h-11zM5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6',
  refresh: 'M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 1.5v3h-3',
  check: 'M2.5 8.5 6 12l7.5-8',
  remove: 'M4 4l8 8M12 4l-8 8',
} as const

export type IconName = keyof typeof SHAPES

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={SHAPES[name]} />
    </svg>
  )
}
