// What can be done with the events that are ticked. It stays in sight below a long list.
import { MOST_IDS } from '../../api.ts'
import { discard, retry } from '../data/acts.ts'
import { number } from '../data/format.ts'
import { useSession } from '../data/session.ts'

export function TickedBar(props: {
  ids: readonly string[]
  untick: () => void
  reload: () => void
}) {
  const { ids, untick, reload } = props
  const { ask } = useSession()
  const isTooMany = ids.length > MOST_IDS
  async function run(make: typeof retry): Promise<void> {
    if (!(await ask(make({ id: ids }, 'what is ticked')))) return
    untick()
    reload()
  }
  return (
    <div class="ticked-bar" role="group" aria-label="Ticked events">
      <p role="status">
        <strong>{number(ids.length)}</strong> ticked
        {isTooMany && `, and at most ${number(MOST_IDS)} can be changed at once`}
      </p>
      {!isTooMany && (
        <>
          <button type="button" class="button button-small" onClick={() => void run(retry)}>
            Retry {number(ids.length)}…
          </button>
          <button type="button" class="button button-small" onClick={() => void run(discard)}>
            Discard {number(ids.length)}…
          </button>
        </>
      )}
      <button type="button" class="button button-small button-quiet" onClick={untick}>
        Untick all
      </button>
    </div>
  )
}
