// What `npm run bench` takes.
import { parseArgs } from 'node:util'

export const USAGE = `npm run bench -- [--quick] [--only throughput,drain,...] [--page]

  --quick  one short round of throughput, latency, overhead, drain and claims, with fewer contenders, in about
           four minutes; writes no page
  --only   some of: throughput, latency, overhead, drain, claims, history, hotkey, fanout, payload, idle
  --page   runs nothing, and writes the page again from the results of earlier runs

A whole run takes about half an hour. On Node 20 its figures are those of the page; on another Node the page
gets a table of targets beside them. With Node 24, whichever is installed:

  npx --yes --package node@24 -- npm run bench`

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
  /** Whether nothing is run, and the page is written from what earlier runs found. */
  readonly pageOnly: boolean
}

export function parseBenchArguments(args: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...args],
    options: { quick: { type: 'boolean' }, only: { type: 'string' }, page: { type: 'boolean' } },
  })
  const quick = values.quick ?? false
  const all = WORKLOADS.filter((name) => !quick || !NOT_QUICK.includes(name))
  const only = values.only?.split(',') ?? all
  const unknown = only.find((name) => !WORKLOADS.some((known) => known === name))
  if (unknown !== undefined) throw new Error(`there is no workload '${unknown}'`)
  const left = only.find((name) => !all.some((known) => known === name))
  if (left !== undefined) throw new Error(`--quick leaves '${left}' out; run it without --quick`)
  return { quick, only: only as WorkloadName[], pageOnly: values.page ?? false }
}
