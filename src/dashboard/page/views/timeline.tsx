// Steps of an event from top to bottom, each with its shape, its word and its time.
import { linkTo } from '../data/route.ts'
import type { Step } from '../data/timeline.ts'
import { Icon, type IconName } from '../parts/icon.tsx'
import { Time } from '../parts/time.tsx'

const SHAPES: Record<Step['kind'], IconName> = {
  done: 'well',
  current: 'loading',
  bad: 'trouble',
  waiting: 'pending',
}

export function Timeline({ steps }: { steps: readonly Step[] }) {
  return (
    <ol class="timeline">
      {steps.map(({ name, at, kind, detail, isOfTopics }) => (
        <li key={name} class={`step-${kind}`}>
          <Icon name={SHAPES[kind]} />
          <div>
            <p>
              <strong>{name}</strong> {at && <Time at={at} />}
            </p>
            {detail && (
              <p class={kind === 'bad' ? 'error-text' : 'soft'}>
                {detail} {isOfTopics && <a href={linkTo('topics')}>Topics</a>}
              </p>
            )}
          </div>
        </li>
      ))}
    </ol>
  )
}
