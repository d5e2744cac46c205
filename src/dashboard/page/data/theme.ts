// Light or dark: the system's setting, unless a person chose. The style sheet does the rest through `color-scheme`.
import { useEffect, useState } from 'preact/hooks'

const KEY = 'aftercommit-theme'
const CHOICES = ['system', 'light', 'dark'] as const
export type Theme = (typeof CHOICES)[number]

export function applyTheme(theme: Theme = chosenTheme()): void {
  document.documentElement.dataset['theme'] = theme
}

/** The choice, and a function that goes on to the next one. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(chosenTheme)
  const next = CHOICES[(CHOICES.indexOf(theme) + 1) % CHOICES.length]!
  return [
    theme,
    () => {
      localStorage.setItem(KEY, next)
      applyTheme(next)
      setTheme(next)
    },
  ]
}

/** Changes with what is seen, for what is drawn on a canvas. */
export function useIsDark(): boolean {
  const [isDark, setDark] = useState(isDarkNow)
  useEffect(() => {
    const update = () => setDark(isDarkNow())
    const system = matchMedia('(prefers-color-scheme: dark)')
    const chosen = new MutationObserver(update)
    system.addEventListener('change', update)
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => {
      system.removeEventListener('change', update)
      chosen.disconnect()
    }
  }, [])
  return isDark
}

function isDarkNow(): boolean {
  const theme = chosenTheme()
  return theme === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark'
}

function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY)
  return CHOICES.find((theme) => theme === kept) ?? 'system'
}
