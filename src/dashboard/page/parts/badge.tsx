// A status by shape and word; the colour only repeats them.
import type { Finding, StatusName } from '../../api.ts'
import { Icon, type IconName } from './icon.tsx'

export const STATUS_WORDS: Record<StatusName, string> = {
  scheduled: 'Scheduled',
  pending: 'Pending',
  failed: 'Failing',
  published: 'Published',
  dead_letter: 'Dead letter',
}

export function StatusBadge({ status, isPaused }: { status: StatusName; isPaused?: boolean }) {
  return (
    <span class={`badge badge-${status}`}>
      <Icon name={status} />
      {STATUS_WORDS[status]}
      {isPaused && <span class="badge-note">paused</span>}
    </span>
  )
}

const SEVERITIES: Record<Finding['severity'], { icon: IconName; word: string }> = {
  error: { icon: 'trouble', word: 'Problem' },
  warning: { icon: 'attention', word: 'Warning' },
  info: { icon: 'info', word: 'Note' },
}

export function SeverityBadge({ severity }: { severity: Finding['severity'] }) {
  const { icon, word } = SEVERITIES[severity]
  return (
    <span class={`badge badge-${severity}`}>
      <Icon name={icon} />
      {word}
    </span>
  )
}
