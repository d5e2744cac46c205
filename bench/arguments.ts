// What `npm run bench` takes.
import { parseArgs } from 'node:util'

export const USAGE = `npm run bench -- [--quick] [--only throughput,drain,...]

  --quick  one short round of throughput, latency, overhead, drain and claims, with fewer contenders, in about
           three minutes; writes no page
  --only   some of: throughput, latency, overhead, drain, claims, history, hotkey, fanout, payload, idle`

export const WORKLOADS = [
  'throughput',
  'latency',
  'overhead',
  'drain',
  'claims',
  'history',
  'hotkey',
  'fanout',
  'payload',
  'idle',
] as const

const NOT_QUICK: readonly string[] = ['history', 'hotkey', 'fanout', 'payload', 'idle']

export type WorkloadName = (typeof WORKLOADS)[number]

export interface BenchArguments {
  readonly quick: boolean
  readonly only: readonly WorkloadName[]
}

export function parseBenchArguments(args: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...args],
    options: { quick: { type: 'boolean' }, only: { type: 'string' } },
  })
  const quick = values.quick ?? false
  const all = WORKLOADS.filter((name) => !quick || !NOT_QUICK.includes(name))
  const only = values.only?.split(',') ?? all
  const unknown = only.find((name) => !WORKLOADS.some((known) => known === name))
  if (unknown !== undefined) throw new Error(`there is no workload '${unknown}'`)
  const left = only.find((name) => !all.some((known) => known === name))
  if (left !== undefined) throw new Error(`--quick leaves '${left}' out; run it without --quick`)
  return { quick, only: only as WorkloadName[] }
}
