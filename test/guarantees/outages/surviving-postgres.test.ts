// The stacks of the README, under load, while Postgres crashes, fails over and ends connections. The service fails some
// units of work and goes on; no error that its code cannot catch ends the process.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { type RunningProcess, startProcess } from '../../support/servers/child-process.ts'
import { connect } from '../../support/servers/database.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Waits until the service has committed so many more units of work. */
async function commits(service: RunningProcess, more: number): Promise<void> {
  let latest = 0
  let ended: unknown = null
  void service.ended.then((end) => (ended = end))
  service.onLines((lines) => (latest = Number(lines.at(-1))))
  await waitUntil(() => latest > 0 || ended, { message: 'the service reports' })
  const enough = latest + more
  await waitUntil(() => latest >= enough || ended, {
    message: () => `the service commits; it is at ${latest} of ${enough}`,
  })
  expect(ended).toBe(null)
}

/** Whether the process has ended by now. */
async function isOver(service: RunningProcess): Promise<boolean> {
  return await Promise.race([service.ended.then(() => true), nextTurn(false)])
}

it.each(['postgres-js', 'node-postgres'] as const)(
  'goes on through crashes, ended connections and a fail-over: Drizzle on %s',
  { timeout: 180_000 },
  async (stack) => {
    const primary = await startPostgres()
    closing.push(() => primary.stop())
    const standby = await primary.startStandby()
    closing.push(() => standby.stop())
    const target = { port: primary.port }
    const proxy = await startProxy(target)
    closing.push(() => proxy.stop())
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`
    const service = startProcess('writes-under-load', [url, stack])
    closing.push(() => service.kill())
    await commits(service, 100)

    for (let round = 0; round < 10; round += 1) {
      const connection = connect(primary.url)
      await connection.client`select pg_terminate_backend(pid) from pg_stat_activity
        where pid <> pg_backend_pid() and backend_type = 'client backend'`
      await connection.close()
      await commits(service, 20)
    }
    for (let round = 0; round < 3; round += 1) {
      await primary.kill()
      await primary.start()
      await commits(service, 50)
    }
    await primary.kill()
    await standby.promote()
    target.port = standby.port
    await commits(service, 200)
    expect(await isOver(service)).toBe(false)
  },
)
