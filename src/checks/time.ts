// Times that people write: ISO 8601 with a zone, or a date, which begins at midnight UTC. Stricter than Date, which takes the 31st
// of February for the 3rd of March and reads a time without a zone by the clock of this machine.

const TIME = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/

/** null: it is none. */
export function parseTime(text: unknown): Date | null {
  if (typeof text !== 'string') return null
  const [, year, month, day] = TIME.exec(text) ?? []
  if (year === undefined) return null
  const date = new Date(text)
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  return Number.isNaN(date.getTime()) || Number(day) > lastDay ? null : date
}
