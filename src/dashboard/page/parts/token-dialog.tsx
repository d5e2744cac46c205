// Asks for the token when the server wants one. It stays in this tab: sessionStorage ends with it.
import { useEffect, useRef, useState } from 'preact/hooks'
import { setTokenPrompt } from '../data/client.ts'

interface Asked {
  readonly wasRefused: boolean
  readonly answer: (token: string) => void
}

export function TokenDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [asked, setAsked] = useState<Asked | null>(null)
  const [token, setToken] = useState('')

  useEffect(() => {
    setTokenPrompt((wasRefused) => new Promise((answer) => setAsked({ wasRefused, answer })))
  }, [])
  useEffect(() => {
    if (asked) dialog.current?.showModal()
  }, [asked])

  if (!asked) return null
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="token-title"
      // There is nothing to see without the token, so Escape does not close it.
      onCancel={(event) => event.preventDefault()}
    >
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault()
          if (!token.trim()) return
          dialog.current?.close()
          setAsked(null)
          setToken('')
          asked.answer(token.trim())
        }}
      >
        <h2 id="token-title">This dashboard needs a token or a sign-in</h2>
        <p>
          {asked.wasRefused
            ? 'The server did not accept the token. Try another one.'
            : 'Enter the token that the dashboard was started with. It is kept for this tab only.'}
        </p>
        <p>
          If you sign in to an application to see this page, your session has ended: sign in again,
          then reload the page.
        </p>
        <label class="field">
          Token
          <input
            type="password"
            autocomplete="current-password"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <div class="actions">
          <button type="submit" class="button button-primary">
            Go on
          </button>
        </div>
      </form>
    </dialog>
  )
}
