// A standby's data: a copy of a running primary, by Postgres's own protocol for backups. The npm package has no
// pg_basebackup, which does the same over the network.
import { chown, cp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import postgresJs from 'postgres'
import type { ProcessIdentity } from './server-process.ts'

export type Copy = {
  /** The folder for it. */
  readonly data: string
  readonly identity: ProcessIdentity | undefined
  /** The port by which the standby follows the primary. */
  readonly through: number
}

export async function copyAsStandby(
  primary: { readonly url: string; readonly data: string },
  { data, identity, through }: Copy,
): Promise<void> {
  const client = postgresJs(primary.url, { max: 1, onnotice: () => {} })
  try {
    const [server] = await client<[{ isOld: boolean }]>`
      select current_setting('server_version_num')::int < 150000 as "isOld"`
    const [start, stop] = server.isOld
      ? [`pg_start_backup('standby', true, false)`, 'pg_stop_backup(false)']
      : [`pg_backup_start('standby', true)`, 'pg_backup_stop()']
    await client.unsafe(`select ${start}`)
    await cp(primary.data, data, { recursive: true, preserveTimestamps: true, filter: isBackedUp })
    const [backup] = await client.unsafe<[{ labelfile: string }]>(`select labelfile from ${stop}`)
    await writeFile(join(data, 'backup_label'), backup.labelfile)
  } finally {
    await client.end()
  }
  await writeFile(join(data, 'standby.signal'), '')
  await writeFile(
    join(data, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${through} user=postgres'\n`,
  )
  await rm(join(data, 'postmaster.opts'), { force: true })
  if (identity) await giveTo(data, identity)
}

/** A file may vanish while it is copied. These are not part of a backup; the WAL comes from the primary, by streaming. */
function isBackedUp(path: string): boolean {
  return !/postmaster\.pid$|pgsql_tmp|pg_internal\.init$|\/pg_stat_tmp\/|\/pg_wal\/[^/]{24}/.test(
    path,
  )
}

async function giveTo(path: string, { uid, gid }: ProcessIdentity): Promise<void> {
  for (const entry of await readdir(path, { recursive: true })) {
    await chown(join(path, entry), uid, gid)
  }
  await chown(path, uid, gid)
}
