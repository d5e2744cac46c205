// The one dialog that asks before anything is changed: how many events, what will happen, and what has to be typed if there is no way
// back. <dialog> keeps the focus inside and gives it back. A refusal is shown in the dialog, which stays open.
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Preview } from '../../api.ts'
import type { Act } from '../data/acts.ts'
import { type ApiError, post } from '../data/client.ts'
import { number } from '../data/format.ts'
import { asApiError } from '../data/poll.ts'
import { Icon } from './icon.tsx'

export function Confirm({ act, done }: { act: Act; done: (outcome: string | null) => void }) {
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  const [preview, setPreview] = useState<Preview | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const [isRunning, setRunning] = useState(false)
  const [text, setText] = useState('')
  const [typed, setTyped] = useState('')

  useEffect(() => {
    dialog.current?.showModal()
    post<Preview>('preview', act.preview).then(setPreview, (reject: unknown) =>
      setError(asApiError(reject)),
    )
  }, [act])

  async function run(): Promise<void> {
    setRunning(true)
    setError(null)
    try {
      const outcome = await act.run(preview!, text.trim())
      dialog.current?.close()
      done(outcome)
    } catch (refused) {
      const { message } = asApiError(refused)
      // Nobody would see it in a dialog that was closed meanwhile.
      if (!dialog.current?.open) return done(message)
      setError(asApiError(refused))
      setRunning(false)
    }
  }

  const isPointless =
    preview !== null && preview.count === 0 && preview.exact && !act.worksOnNothing
  const warning = preview && act.warning?.(preview, text.trim())
  const choices = preview && act.field?.choices?.(preview)
  const isFilled = !act.field?.isRequired || text.trim() !== ''
  const isReady =
    preview !== null && !isPointless && isFilled && (!act.word || typed.trim() === act.word)
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={`${id}t`}
      aria-describedby={`${id}d`}
      onCancel={(event) => isRunning && event.preventDefault()}
      onClose={() => !isRunning && done(null)}
    >
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady && !isRunning) void run()
        }}
      >
        <h2 id={`${id}t`}>{act.title}</h2>
        <div id={`${id}d`}>
          <p class="dialog-count" aria-live="polite">
            {preview ? act.about(preview) : error ? 'Not counted' : 'Counting…'}
          </p>
          <p>
            {isPointless
              ? 'No event matches any more, so there is nothing to do.'
              : act.consequence}
          </p>
        </div>
        {warning && (
          <p class="dialog-warning" role="status">
            <Icon name="attention" />
            {warning}
          </p>
        )}
        {act.field && !isPointless && (
          <label class="field">
            {act.field.label}
            <input
              value={text}
              list={choices ? `${id}c` : undefined}
              required={act.field.isRequired}
              autocapitalize="none"
              onInput={(event) => setText(event.currentTarget.value)}
            />
            {choices && (
              <datalist id={`${id}c`}>
                {choices.map((choice) => (
                  <option key={choice} value={choice} />
                ))}
              </datalist>
            )}
          </label>
        )}
        {act.word && !isPointless && (
          <label class="field">
            <span>
              There is no way back. Type <code>{act.word}</code> to go on.
            </span>
            <input
              value={typed}
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        {isRunning && <p class="soft">It continues if you close this.</p>}
        <p class="dialog-error" role="alert">
          {error?.message}
        </p>
        <div class="actions">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            {isPointless || isRunning ? 'Close' : 'Cancel'}
          </button>
          {!isPointless && (
            <button
              type="submit"
              class={`button ${act.word ? 'button-danger' : 'button-primary'}`}
              disabled={!isReady || isRunning}
            >
              {isRunning ? 'Working…' : labelOf(act, preview)}
            </button>
          )}
        </div>
      </form>
    </dialog>
  )
}

function labelOf(act: Act, preview: Preview | null): string {
  if (act.worksOnNothing || !preview || preview.count === 0) return act.button
  return `${act.button} ${number(preview.count)}${preview.exact ? '' : ' or more'}`
}
