// What is told at the end: the numbers as one object, and the same in words.
import type { SoakArguments } from './arguments.ts'
import { NAPTIME_SECONDS, type SizeVerdict } from './bounds.ts'
import { afterWarmUp, costAtEnd, MB, most, ofPhase, type Sample, written } from './samples.ts'
import { STEPS, type Step } from './table-watch.ts'
import type { Evidence, SoakVerdict } from './verdict.ts'

export function summarize(args: SoakArguments, evidence: Evidence, verdict: SoakVerdict) {
  const { samples, delivery, first, last } = evidence
  const measured = afterWarmUp(samples)
  const { committed: units, rolledBack, failed, missed, warnings, errors } = evidence.tally
  return {
    ...args,
    ...delivery,
    units: { committed: units, rolledBack, failed, missed },
    heapMbPerMinute: round(verdict.memory.heap),
    externalMbPerMinute: round(verdict.memory.external),
    rssMbPerMinute: round(verdict.memory.rss),
    heapMb: { first: heapMb(measured[0]!), last: heapMb(measured.at(-1)!) },
    handles: { first: first.handles, last: last.handles },
    listeners: { first: first.listeners, last: last.listeners },
    endedByItself: evidence.endedByItself,
    warnings,
    errors,
    healthFlags: [...new Set(samples.flatMap(({ service }) => service.flags))],
    tableMb: sizes(verdict.table),
    indexMb: sizes(verdict.index),
    deadRows: {
      steady: most(ofPhase(samples, 'steady'), 'deadRows'),
      held: most(ofPhase(samples, 'held'), 'deadRows'),
      end: measured.at(-1)!.table.deadRows,
    },
    versionsPerRow: round(written(measured, 'versions') / written(measured, 'rows')),
    autovacuums: measured.at(-1)!.table.autovacuums,
    statements: Object.fromEntries(STEPS.map((step) => [step, costs(samples, step)])),
    failures: verdict.failures,
    notJudged: verdict.notJudged,
  }
}

export type Summary = ReturnType<typeof summarize>

export function explain(summary: Summary): string[] {
  const { tableMb, indexMb, statements, units } = summary
  return [
    `events: ${summary.committed} committed, ${summary.delivered} delivered, ${summary.lost} lost, ${summary.duplicates} doubled`,
    `units of work: ${units.committed} committed, ${units.rolledBack} rolled back on purpose, ${units.failed} failed, ${units.missed} not begun because too many others were under way; ${summary.errors} background steps failed`,
    `memory after the warm-up, by a straight line, in MB a minute: heap after a collection ${summary.heapMbPerMinute}, buffers ${summary.externalMbPerMinute}, resident ${summary.rssMbPerMinute}`,
    'handles and listeners: the median of several looks while the service rests, after the warm-up (first) and at the end (last)',
    `table in MB: at most ${tableMb.steady} with autovacuum every ${NAPTIME_SECONDS} s (limit ${tableMb.steadyLimit}), at most ${tableMb.heldMax} with an old transaction held (limit ${tableMb.heldLimit}), ${tableMb.end} at the end`,
    `all indexes in MB: at most ${indexMb.steady} (limit ${indexMb.steadyLimit}), at most ${indexMb.heldMax} held (limit ${indexMb.heldLimit}), ${indexMb.end} at the end`,
    'statements, mean of one call in the last minute of each phase, as Postgres counts it (judged: the pages of a claim):',
    ...Object.entries(statements).map(([step, { steady, held, recovered }]) => {
      return `  ${step}: ${steady.ms} ms and ${steady.pages} pages; held ${held.ms} ms and ${held.pages} pages; recovered ${recovered.ms} ms and ${recovered.pages} pages`
    }),
    ...summary.notJudged.map((text) => `not judged in a run this short: ${text}`),
    ...summary.failures.map((text) => `FAILED  ${text}`),
  ]
}

export function progressOf({ phase, service, table }: Sample): string {
  const { committed, failed, missed, heapBytes, rssBytes } = service
  const { tableBytes, indexBytes, deadRows, autovacuums } = table
  return (
    `${phase}: ${committed} units committed, ${failed} failed, ${missed} missed; ` +
    `heap ${mb(heapBytes)} MB, resident ${mb(rssBytes)} MB; ` +
    `table ${mb(tableBytes)} MB, indexes ${mb(indexBytes)} MB, ${deadRows} dead rows, ${autovacuums} autovacuums`
  )
}

function costs(samples: readonly Sample[], step: Step) {
  const at = (name: 'steady' | 'held' | 'recovery') => {
    const { calls, ms, pages } = costAtEnd(ofPhase(samples, name), step)
    return { calls, ms: round(ms), pages: Math.round(pages) }
  }
  return { steady: at('steady'), held: at('held'), recovered: at('recovery') }
}

function sizes({ steady, held, end, steadyLimit, heldLimit }: SizeVerdict) {
  return {
    steady: mb(steady),
    heldMax: mb(held),
    end: mb(end),
    steadyLimit: mb(steadyLimit),
    heldLimit: mb(heldLimit),
  }
}

const heapMb = ({ service }: Sample) => mb(service.heapBytes)
const mb = (bytes: number) => Math.round((bytes / MB) * 10) / 10
const round = (value: number) => Math.round(value * 1_000) / 1_000
