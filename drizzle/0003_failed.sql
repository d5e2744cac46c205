-- Events that failed and rest until their next attempt, for failure groups. An event that never fails is never in this index,
-- so it costs the path nothing. Building it reads the whole table once, and saves wait meanwhile. On a large table that is
-- not partitioned, make it beforehand with CREATE INDEX CONCURRENTLY, under the same name.
CREATE INDEX IF NOT EXISTS "outbox_failed_idx" ON "outbox" USING btree ("seq") WHERE "outbox"."seq" > 0 and "outbox"."status" = 'failed';
