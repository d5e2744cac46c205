DROP INDEX "outbox_aggregate_idx";--> statement-breakpoint
CREATE INDEX "outbox_dead_idx" ON "outbox" USING btree ("seq") WHERE "outbox"."status" = 'dead_letter';--> statement-breakpoint
CREATE INDEX "outbox_aggregate_idx" ON "outbox" USING btree ("aggregate_type","aggregate_id","status","seq") WHERE "outbox"."status" <> 'published';