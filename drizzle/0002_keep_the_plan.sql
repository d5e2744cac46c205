-- What an event has to follow, for save() in src/store/postgres-save.ts, which says the same in SQL of its own where this
-- is missing. A function, as Postgres keeps its plan: planning it anew took longer than the whole INSERT. A plan that is
-- kept must do for any size of the table, and one made while the table is empty would read all of it later: hence
-- enable_seqscan. STABLE, so that it sees what the INSERT sees: not the rows that this very INSERT adds.
-- OR REPLACE, as it outlives the table when that is dropped. use_variable, as the table may have got a column called key.
CREATE OR REPLACE FUNCTION "outbox_after"(kind text, key text, place bigint, token uuid, dead_letters_hold boolean)
RETURNS float8 LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_seqscan = off AS $aftercommit$
#variable_conflict use_variable
BEGIN
  IF token is null THEN RETURN null; END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN RETURN 'infinity'; END IF;
  -- Mostly there is nothing, and one look has to do.
  IF not exists (select 1 from "outbox" p where p.aggregate_type = kind and p.aggregate_id = key and p.seq < place
    and p.status <> 'published') THEN RETURN null; END IF;
  IF dead_letters_hold and exists (select 1 from "outbox" p where p.aggregate_type = kind and p.aggregate_id = key
    and p.seq < place and p.status <> 'published' and p.status = 'dead_letter'
    and p.aggregate_type <> 'aftercommit.dead_letter') THEN RETURN 'infinity'; END IF;
  IF exists (select 1 from "outbox" p where p.aggregate_type = kind and p.aggregate_id = key and p.seq < place
    and p.status <> 'published' and p.status = (select 'pending') and p.lease_token is distinct from token)
  THEN RETURN 'infinity'; END IF;
  RETURN (select max(p.seq) from "outbox" p where p.aggregate_type = kind and p.aggregate_id = key and p.seq < place
    and p.status <> 'published' and p.status = (select 'pending'));
END $aftercommit$;
