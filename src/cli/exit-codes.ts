// How a command ends; docs/reference/cli.md explains each.
export const EXIT = {
  /** It did what it was asked, and found nothing wrong. */
  fine: 0,
  /** It failed, or a person said no. */
  failed: 1,
  /** It was called wrongly, or a change needs --yes. */
  usage: 2,
  /** `doctor` or `status` found trouble. */
  trouble: 3,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
