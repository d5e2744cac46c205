// aftercommit instances: the processes that run on the table, as their last beat described them.
import type { Instance } from '../../store/outbox/control-store.ts'
import { formatAge } from '../../upkeep/age.ts'
import type { AddCommand } from '../command.ts'
import { describeCircuit, isLate, isLost } from '../../upkeep/seen-instances.ts'
import type { Output } from '../output/output.ts'
import { type Cells, formatTable, printable } from '../output/table.ts'

export const instancesCommand: AddCommand = (program, run) => {
  program
    .command('instances')
    .description('the processes that run an outbox on the table')
    .action(
      run(async (context) => {
        const { out } = context
        const { store, now } = await context.session()
        const instances = await store.control.instances()
        const nowMs = await now()
        out.document(instances, () =>
          instances.length === 0
            ? 'no instance was seen in the last hour'
            : formatTable(
                instances.map((instance) => toCells(instance, out, nowMs)),
                { width: out.width, below: instances.map(describeCircuits) },
              ),
        )
      }),
    )
}

function toCells(instance: Instance, out: Output, nowMs: number): Cells {
  const { inFlight, published } = instance.report
  const seen = `${formatAge(instance.seenMsAgo)} ago`
  return {
    worker: printable(instance.workerId),
    host: printable(instance.host),
    pid: instance.pid,
    version: printable(instance.version),
    started: out.time(instance.startedAt, nowMs),
    seen: isLost(instance)
      ? out.style('red', `${seen} (lost)`)
      : isLate(instance)
        ? out.style('yellow', `${seen} (late)`)
        : seen,
    'in flight': inFlight,
    published: `${published.immediate} + ${published.fallback}`,
    runs: describePaths(instance),
    publishes: describePublishers(instance),
  }
}

/** What a lost instance could not reach may be reachable now. */
function describeCircuits(instance: Instance): string[] {
  if (isLost(instance)) return []
  return instance.report.circuits.map((circuit) => {
    return printable(describeCircuit({ ...circuit, forMs: circuit.forMs + instance.seenMsAgo }))
  })
}

function describePaths({ immediate, poller }: Instance): string {
  const paths = [immediate && 'immediate', poller && 'fallback'].filter(Boolean)
  return paths.join(' + ') || 'nothing'
}

function describePublishers({ publishers }: Instance): string {
  const each = publishers.map(({ name, topics }) => {
    return `${name} (${topics === null ? 'every topic' : topics.join(', ')})`
  })
  return printable(each.join('; ')) || '-'
}
