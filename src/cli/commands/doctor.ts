// aftercommit doctor: checks everything around the outbox and names a remedy for each finding; exit code 3 if there are any.
import { OLD_MS } from '../../upkeep/late.ts'
import { groupBy } from '../../runtime/group-by.ts'
import { type Diagnosis, diagnose } from '../../upkeep/doctor/doctor.ts'
import type { Finding } from '../../upkeep/doctor/finding.ts'
import { doctorParts } from '../../upkeep/doctor/parts.ts'
import { duration } from '../arguments.ts'
import type { AddCommand } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import { printable } from '../output/table.ts'
import { wrap } from '../output/wrap.ts'

interface Options {
  readonly oldTransaction: number
  readonly showQueries?: boolean
}

export const doctorCommand: AddCommand = (program, run) => {
  program
    .command('doctor')
    .description('look for problems, and name the remedies')
    .option(
      '--old-transaction <duration>',
      'a transaction open for longer than this is old',
      duration,
      OLD_MS,
    )
    .option('--show-queries', 'also the statements of old transactions, which may hold data')
    .action(
      run(async (context, { oldTransaction, showQueries = false }: Options) => {
        const { out } = context
        const { opened, ...session } = await context.session()
        const settings = { oldTransactionMs: oldTransaction, showQueries }
        const diagnosis = await diagnose(doctorParts({ ...session, db: opened.db }, settings))
        out.document(diagnosis, () => formatDiagnosis(diagnosis, out))
        return diagnosis.ok ? EXIT.fine : EXIT.trouble
      }),
    )
}

const MARKS = {
  error: ['red', 'error  '],
  warning: ['yellow', 'warning'],
  info: ['cyan', 'info   '],
} as const

/** As wide as a mark and the gap after it. */
const SPACE = ' '.repeat(9)

function formatDiagnosis({ ok, checked, findings, skipped }: Diagnosis, out: Output): string {
  const fit = (text: string) => wrap(printable(text), out.width, SPACE.length)
  const format = ({ severity, check, message, remedy }: Finding) => {
    const [colour, mark] = MARKS[severity]
    const first = `${out.style(colour, mark)}  ${fit(`${check}: ${message}`)}`
    return remedy === null ? first : `${first}\n${SPACE}${fit(`remedy: ${remedy}`)}`
  }
  return [
    ...findings.map(format),
    ...[...groupBy(skipped, ({ reason }) => reason)].map(
      ([reason, them]) =>
        `skipped  ${fit(`${them.map(({ check }) => check).join(', ')}: ${reason}`)}`,
    ),
    wrap(
      `${ok ? 'no problems found' : 'problems found'}; checked: ${checked.join(', ')}`,
      out.width,
      0,
    ),
  ].join('\n')
}
