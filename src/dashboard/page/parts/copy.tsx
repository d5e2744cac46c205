// A text that can be copied with one click, and shows when it was.
import { useEffect, useState } from 'preact/hooks'
import { splitCommands } from '../data/commands.ts'
import { toSentence } from '../data/format.ts'
import { Icon } from './icon.tsx'

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), 2000)
    return () => clearTimeout(timer)
  }, [isCopied])
  return (
    <button
      type="button"
      class="copy"
      title={`Copy ${what}`}
      aria-label={isCopied ? `Copied ${what}` : `Copy ${what}`}
      onClick={() => void copyText(text).then(setCopied)}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
    </button>
  )
}

export function Copyable({ text, what }: { text: string; what: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} what={what} />
    </span>
  )
}

/** Prose whose commands can be copied. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {splitCommands(text).map((piece, index) =>
        piece.isCommand ? (
          <Copyable key={index} text={piece.text} what="this command" />
        ) : index === 0 ? (
          toSentence(piece.text)
        ) : (
          piece.text
        ),
      )}
    </>
  )
}

// Outside a secure context, such as http:// on another machine, there is no clipboard API.
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
  }
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'visually-hidden'
  document.body.append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  return isCopied
}
