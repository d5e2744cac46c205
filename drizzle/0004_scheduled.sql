-- Scheduled events. Until an event is due, its status keeps it out of every index but this one and the primary key, so it costs
-- the others nothing. Existing rows fit the new check: it only adds a status. The check and the index each read the whole table once,
-- and saves wait meanwhile.
ALTER TABLE "outbox" DROP CONSTRAINT "outbox_status_check";--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "deliver_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "outbox_scheduled_idx" ON "outbox" USING btree ("deliver_at") WHERE "outbox"."deliver_at" > '-infinity' and "outbox"."status" = 'scheduled';--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_status_check" CHECK ("outbox"."status" in ('scheduled', 'pending', 'failed', 'published', 'dead_letter'));
