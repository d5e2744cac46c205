-- Makes the table a partitioned one, by range of the id. A UUIDv7 begins with its time, so a day is a range of ids, and the
-- primary key stays the id. The table as it was becomes the first partition, "outbox_before": everything up to tomorrow
-- (UTC). It is scanned once, to prove that; nothing else here depends on its size. All other statements wait meanwhile.
-- A publication stays on the table that becomes "outbox_before", and its readers, such as a connector of relay: 'cdc', would get
-- nothing that is saved from then on.
DO $aftercommit$
DECLARE
  published text := (SELECT string_agg(quote_ident(p.pubname), ', ' ORDER BY p.pubname)
    FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = $name$"outbox"$name$::regclass);
BEGIN
  IF published IS NOT NULL THEN
    RAISE 'nothing was changed, because the table is in the publication %, which would not follow it: its readers would miss every later event; stop what saves or relay by the library (relay: ''outbox''), let the readers catch up, drop the publication, make the partitions, and create it again (see "Partitions later" in docs/guides/cdc.md)', published;
  END IF;
END $aftercommit$;--> statement-breakpoint
LOCK TABLE "outbox" IN ACCESS EXCLUSIVE MODE;--> statement-breakpoint
ALTER TABLE "outbox" RENAME TO "outbox_before";--> statement-breakpoint
ALTER SEQUENCE "outbox_seq_seq" RENAME TO "outbox_old_seq";--> statement-breakpoint
ALTER INDEX "outbox_pkey" RENAME TO "outbox_old_pkey";--> statement-breakpoint
ALTER INDEX "outbox_due_idx" RENAME TO "outbox_old_due";--> statement-breakpoint
ALTER INDEX "outbox_lane_idx" RENAME TO "outbox_old_lane";--> statement-breakpoint
ALTER INDEX "outbox_dead_lane_idx" RENAME TO "outbox_old_dead_lane";--> statement-breakpoint
ALTER INDEX "outbox_dead_idx" RENAME TO "outbox_old_dead";--> statement-breakpoint
ALTER INDEX "outbox_failed_idx" RENAME TO "outbox_old_failed";--> statement-breakpoint
ALTER INDEX "outbox_scheduled_idx" RENAME TO "outbox_old_scheduled";--> statement-breakpoint
CREATE TABLE "outbox" (LIKE "outbox_before" INCLUDING ALL EXCLUDING IDENTITY EXCLUDING INDEXES) PARTITION BY RANGE ("id");--> statement-breakpoint
-- Partitioned tables have identity columns only from Postgres 17 on, so `seq` gets a sequence, which goes on where the
-- identity's was. Inserting into an identity needs no right to its sequence, and neither does this.
CREATE SEQUENCE "outbox_seq_seq" OWNED BY "outbox"."seq";--> statement-breakpoint
GRANT USAGE ON SEQUENCE "outbox_seq_seq" TO PUBLIC;--> statement-breakpoint
SELECT setval(n.tableoid, o.last_value, o.is_called) FROM "outbox_seq_seq" n, "outbox_old_seq" o;--> statement-breakpoint
ALTER TABLE "outbox" ALTER COLUMN "seq" SET DEFAULT nextval($name$"outbox_seq_seq"$name$);--> statement-breakpoint
ALTER TABLE "outbox_before" ALTER COLUMN "seq" DROP IDENTITY;--> statement-breakpoint
-- The same definitions as in 0000_create_outbox.sql, 0003_failed.sql and 0004_scheduled.sql: attaching the old table then takes its indexes as they are.
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_pkey" PRIMARY KEY ("id");--> statement-breakpoint
CREATE INDEX "outbox_due_idx" ON "outbox" USING btree ("topic","available_at","seq") WHERE "outbox"."topic" <> '' and "outbox"."status" in ('pending', 'failed');--> statement-breakpoint
CREATE INDEX "outbox_lane_idx" ON "outbox" USING btree ("lane","seq") WHERE "outbox"."lane" >= 0 and "outbox"."status" in ('pending', 'failed');--> statement-breakpoint
CREATE INDEX "outbox_dead_lane_idx" ON "outbox" USING btree ("lane","seq") WHERE "outbox"."lane" >= 0 and "outbox"."status" = 'dead_letter';--> statement-breakpoint
CREATE INDEX "outbox_dead_idx" ON "outbox" USING btree ("seq") WHERE "outbox"."seq" > 0 and "outbox"."status" = 'dead_letter';--> statement-breakpoint
CREATE INDEX "outbox_failed_idx" ON "outbox" USING btree ("seq") WHERE "outbox"."seq" > 0 and "outbox"."status" = 'failed';--> statement-breakpoint
CREATE INDEX "outbox_scheduled_idx" ON "outbox" USING btree ("deliver_at") WHERE "outbox"."deliver_at" > '-infinity' and "outbox"."status" = 'scheduled';--> statement-breakpoint
-- For every id that no other partition covers, so that no INSERT fails for want of one.
CREATE TABLE "outbox_default" PARTITION OF "outbox" DEFAULT;--> statement-breakpoint
-- The first id of a day (UTC).
CREATE OR REPLACE FUNCTION "outbox_first_id"(day date) RETURNS uuid LANGUAGE sql IMMUTABLE AS $aftercommit$
  SELECT (lpad(to_hex(extract(epoch from day)::bigint * 1000), 12, '0') || repeat('0', 20))::uuid
$aftercommit$;--> statement-breakpoint
-- Ids of applications whose clock is ahead by a day.
WITH ahead AS (
  DELETE FROM "outbox_before" WHERE "id" >= "outbox_first_id"((now() at time zone 'utc')::date + 1) RETURNING *
) INSERT INTO "outbox" SELECT * FROM ahead;--> statement-breakpoint
ALTER TABLE "outbox" ATTACH PARTITION "outbox_before"
  FOR VALUES FROM (MINVALUE) TO ("outbox_first_id"((now() at time zone 'utc')::date + 1));--> statement-breakpoint
-- Every role that was allowed to use the table still is.
DO $aftercommit$
DECLARE
  old pg_class := (SELECT c FROM pg_class c WHERE c.oid = $name$"outbox_before"$name$::regclass);
  parent regclass := $name$"outbox"$name$;
  granted record;
BEGIN
  FOR granted IN SELECT a.privilege_type AS act, a.is_grantable,
      CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
    FROM aclexplode(old.relacl) a WHERE a.grantee <> old.relowner
  LOOP
    EXECUTE format('GRANT %s ON %s TO %s', granted.act, parent, granted.role)
      || CASE WHEN granted.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
  END LOOP;
  EXECUTE format('ALTER TABLE %s OWNER TO %s', $name$"outbox_default"$name$, old.relowner::regrole);
  EXECUTE format('ALTER TABLE %s OWNER TO %s', parent, old.relowner::regrole);
END $aftercommit$;--> statement-breakpoint
-- The two steps of the upkeep that lock the table are functions, so that each is one statement: a process that stalls, or
-- whose connection dies, holds no lock. Other statements wait for them no longer than their lock_timeout, and what they
-- do under the lock takes a few milliseconds.
--
-- Makes the partition of a day (UTC). Returns false if another instance has made it, or if the default partition has rows of
-- that day: those rows, and the rest of the day, stay there. Attaching locks the default partition and scans it, hence the limit for its size, in bytes.
CREATE OR REPLACE FUNCTION "outbox_make_day"(day date, largest_default bigint) RETURNS boolean LANGUAGE plpgsql
SET search_path FROM CURRENT SET lock_timeout = '100ms' AS $aftercommit$
DECLARE
  parent regclass := $name$"outbox"$name$;
  made text := format('%I', (SELECT relname FROM pg_class WHERE oid = parent) || to_char(day, '_YYYYMMDD'));
  owner regrole;
BEGIN
  IF to_regclass(made) IS NOT NULL THEN RETURN false; END IF;
  IF EXISTS (SELECT FROM "outbox_default"
    WHERE id >= "outbox_first_id"(day) AND id < "outbox_first_id"(day + 1)) THEN RETURN false; END IF;
  IF pg_relation_size($name$"outbox_default"$name$::regclass) > largest_default THEN
    RAISE 'the default partition is larger than % bytes; saves would wait while it is scanned', largest_default;
  END IF;
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING ALL)', made, parent);
  -- Any member of the owner may have to drop it.
  owner := (SELECT relowner::regrole FROM pg_class WHERE oid = parent);
  IF owner <> current_user::regrole THEN EXECUTE format('ALTER TABLE %s OWNER TO %s', made, owner); END IF;
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)', parent, made,
    "outbox_first_id"(day), "outbox_first_id"(day + 1));
  RETURN true;
END $aftercommit$;--> statement-breakpoint
-- Drops a partition if every row in it is published. Returns false if not: a row was saved or retried since the caller
-- looked. Partial indexes find such a row. enable_seqscan = off: by stale statistics, the planner might read all rows.
-- That all are past their retention is not checked again, as it would take a scan: what was both saved and published
-- since the caller looked goes too. It has been delivered.
CREATE OR REPLACE FUNCTION "outbox_drop_part"(part oid) RETURNS boolean LANGUAGE plpgsql
SET search_path FROM CURRENT SET lock_timeout = '100ms' SET enable_seqscan = off AS $aftercommit$
DECLARE
  parent regclass := $name$"outbox"$name$;
  unfinished boolean;
BEGIN
  -- Above read committed, the snapshot would be older than the lock.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE 'partitions are dropped at the isolation level read committed only; make it the default of this role';
  END IF;
  -- All statements lock the table before its partitions, so this lock also frees the partitions, unless autovacuum or a
  -- manual session holds them.
  LOCK TABLE ONLY "outbox" IN ACCESS EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = part AND inhparent = parent) THEN RETURN false; END IF;
  EXECUTE format('LOCK TABLE %s, %s IN ACCESS EXCLUSIVE MODE', $name$"outbox_default"$name$, part::regclass);
  EXECUTE format('SELECT EXISTS (SELECT FROM %1$s WHERE topic <> '''' AND status in (''pending'', ''failed''))
    OR EXISTS (SELECT FROM %1$s WHERE seq > 0 AND status = ''dead_letter'')
    OR EXISTS (SELECT FROM %1$s WHERE deliver_at > ''-infinity'' AND status = ''scheduled'')', part::regclass) INTO unfinished;
  IF unfinished THEN RETURN false; END IF;
  EXECUTE format('DROP TABLE %s', part::regclass);
  RETURN true;
END $aftercommit$;
