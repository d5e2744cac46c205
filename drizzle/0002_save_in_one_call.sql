-- The INSERT of save() in src/store/postgres-save.ts, as a function, for one reason: Postgres keeps its plan. Planning
-- took longer than executing. A plan that is kept must do for any size of the table, and one made while the table is
-- empty would read all of it later: hence enable_seqscan.
CREATE FUNCTION "outbox_save"(events text, lease_ms float8, token uuid, worker text, in_order boolean, dead_letters_hold boolean)
RETURNS TABLE (id text, seq text, "occurredAt" float8, after text)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $aftercommit_save$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  insert into "outbox" as o (id, aggregate_type, aggregate_id, event_type, topic, payload, headers, max_attempts,
    available_at, lease_token, worker_id, occurred_at)
  select e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.topic, coalesce(e.payload, 'null'), e.headers,
    e.max_attempts, clock_timestamp() + lease_ms * interval '1 ms', token, worker,
    coalesce(to_timestamp(e.occurred_ms / 1000), clock_timestamp())
  from json_to_recordset(events::json) as e(n int, id uuid, aggregate_type text, aggregate_id text, event_type text,
    topic text, payload json, headers json, max_attempts int, occurred_ms float8)
  order by e.n
  returning o.id::text, o.seq::text, (extract(epoch from o.occurred_at) * 1000)::float8,
    (case when not in_order or o.lease_token is null then null
      when current_setting('transaction_isolation') <> 'read committed' then 'infinity'
      when dead_letters_hold and exists (select 1 from "outbox" p where p.aggregate_type = o.aggregate_type
        and p.aggregate_id = o.aggregate_id and p.seq < o.seq and p.status <> 'published'
        and p.status = 'dead_letter' and p.aggregate_type <> 'aftercommit.dead_letter') then 'infinity'
      when exists (select 1 from "outbox" p where p.aggregate_type = o.aggregate_type
        and p.aggregate_id = o.aggregate_id and p.seq < o.seq and p.status <> 'published'
        and p.status = (select 'pending') and p.lease_token is distinct from o.lease_token) then 'infinity'
      else (select max(p.seq) from "outbox" p where p.aggregate_type = o.aggregate_type
        and p.aggregate_id = o.aggregate_id and p.seq < o.seq and p.status <> 'published'
        and p.status = (select 'pending'))::float8 end)::text;
END $aftercommit_save$;
