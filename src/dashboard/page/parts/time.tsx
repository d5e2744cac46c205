// A time relative to the database's clock, with the exact one on hover.
import { databaseNow, useTick } from '../data/clock.ts'
import { exactTime, relative } from '../data/format.ts'

export function Time({ at }: { at: string }) {
  useTick(5000)
  return (
    <time dateTime={at} title={`${exactTime(at)}\n${at}`}>
      {relative(Date.parse(at), databaseNow())}
    </time>
  )
}
