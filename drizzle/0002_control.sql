-- What operators steer and see: pauses, and the instances that run. IF NOT EXISTS, because these tables outlive the outbox
-- table when that is dropped.
CREATE TABLE IF NOT EXISTS "outbox_instances" (
	"id" uuid PRIMARY KEY NOT NULL,
	"worker_id" text NOT NULL,
	"host" text NOT NULL,
	"pid" integer NOT NULL,
	"version" text NOT NULL,
	"started_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"seen_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"publishers" json NOT NULL,
	"immediate" boolean NOT NULL,
	"poller" boolean NOT NULL,
	"settings" json NOT NULL,
	"report" json NOT NULL
);
--> statement-breakpoint
CREATE TABLE IF NOT EXISTS "outbox_pauses" (
	"topic" text PRIMARY KEY NOT NULL,
	"since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"paused_by" text,
	"reason" text
);
