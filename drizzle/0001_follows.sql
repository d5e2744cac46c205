-- What an event has to follow, for the save in src/store/outbox/save.ts: the earlier events of its lane that are not
-- published. Returns null if that is unknown, or if there are too many to list.
-- A function, because Postgres caches its plan: planning the query with each INSERT took longer than the INSERT itself. A
-- cached plan has to be right for any size of the table. One that was made while the table was empty would scan the whole
-- table later, hence enable_seqscan = off.
-- STABLE, so that it sees what the INSERT sees, and not the rows that this INSERT adds.
-- Above read committed, the snapshot may be older than the lock on the aggregate, so the function returns null and the
-- claim keeps the order. OR REPLACE, because the function outlives the table when that is dropped.
CREATE OR REPLACE FUNCTION "outbox_follows"(own_lane bigint, place bigint, dead_letters_hold boolean)
RETURNS bigint[] LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET enable_seqscan = off AS $aftercommit$
#variable_conflict use_variable
DECLARE
  earlier bigint[];
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN RETURN null; END IF;
  earlier := array(select p.seq from "outbox" p where p.lane = own_lane and p.seq < place
    and p.lane >= 0 and p.status in ('pending', 'failed') limit 1001);
  IF cardinality(earlier) > 1000 THEN RETURN null; END IF;
  IF dead_letters_hold THEN
    earlier := earlier || array(select p.seq from "outbox" p where p.lane = own_lane and p.seq < place
      and p.lane >= 0 and p.status = 'dead_letter' and p.aggregate_type <> 'aftercommit.dead_letter' order by p.seq limit 1);
  END IF;
  RETURN earlier;
END $aftercommit$;
