// A database taken away after its turn, with all that holds on to it.
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'

export async function dropDatabase(admin: postgres.Sql, database: string): Promise<void> {
  await dropSlots(admin, database)
  await admin.unsafe(`drop database if exists ${database} with (force)`)
}

// A slot keeps its database from being dropped, and its reader may be gone for a moment before the server knows.
async function dropSlots(admin: postgres.Sql, database: string): Promise<void> {
  for (;;) {
    await admin`select pg_terminate_backend(active_pid) from pg_replication_slots
      where database = ${database} and active`
    const left = await admin`
      select slot_name, case when not active then pg_drop_replication_slot(slot_name) end
      from pg_replication_slots where database = ${database}`
    if (left.length === 0) return
    await delay(100)
  }
}
