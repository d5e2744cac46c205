// CPU time from /proc: of a server with all its processes, and of a process with all its threads.
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { CpuTally } from '../../../bench/server-cost.ts'

const SAMPLE_MS = 200
/** In /proc/<pid>/stat: the parent, and user and system time in ticks of 10 ms. The name before them is in parentheses. */
const [PARENT, USER, SYSTEM] = [1, 11, 12]
const TICK_NS = 10_000_000

async function statOf(pid: number): Promise<readonly string[] | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  return text?.slice(text.lastIndexOf(')') + 2).split(' ') ?? null
}

/** Nanoseconds of all its threads. */
export async function cpuOf(pid: number): Promise<number> {
  const stat = await statOf(pid)
  if (!stat) throw new Error(`the process ${pid} has ended`)
  return (Number(stat[USER]) + Number(stat[SYSTEM])) * TICK_NS
}

/** Processes of Postgres have one thread, of which the kernel says nanoseconds. */
async function familyOf(parent: number): Promise<ReadonlyMap<number, number>> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0)
  const entries = await Promise.all(
    pids.map(async (pid) => {
      const stat = await statOf(pid)
      if (!stat || (pid !== parent && Number(stat[PARENT]) !== parent)) return null
      const text = await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => null)
      return text === null ? null : ([pid, Number(text.split(' ')[0])] as const)
    }),
  )
  return new Map(entries.filter((entry) => entry !== null))
}

/** Watches a Postgres with its backends, autovacuum, checkpointer and writers. Returns what ends the watch, with nanoseconds. */
export async function watchServer(pid: number): Promise<() => Promise<number>> {
  const tally = new CpuTally(await familyOf(pid))
  const ending = new AbortController()
  const sampling = (async () => {
    while (!ending.signal.aborted) {
      await delay(SAMPLE_MS, undefined, { signal: ending.signal }).catch(() => {})
      tally.note(await familyOf(pid))
    }
  })()
  return async () => {
    ending.abort()
    await sampling
    return tally.microseconds * 1_000
  }
}
