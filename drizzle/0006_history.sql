-- What each instance did minute by minute, for the dashboard. Older versions leave both columns null. IF NOT EXISTS, because this
-- table outlives the outbox table when that is dropped.
ALTER TABLE "outbox_instances" ADD COLUMN IF NOT EXISTS "history" json;--> statement-breakpoint
ALTER TABLE "outbox_instances" ADD COLUMN IF NOT EXISTS "history_at" timestamp with time zone;
