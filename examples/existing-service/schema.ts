// The tables that the service has had all along.
import type pg from 'pg'

export async function createTables(pool: pg.Pool): Promise<void> {
  await pool.query(`
    create table if not exists customers (name text primary key, spent integer not null check (spent <= 1000));
    create table if not exists orders (
      id serial primary key,
      customer text not null references customers,
      total integer not null,
      status text not null default 'placed'
    );
    insert into customers values ('Ada', 0) on conflict (name) do update set spent = 0`)
}
