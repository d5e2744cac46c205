CREATE TABLE "outbox" (
	"id" uuid PRIMARY KEY NOT NULL,
	"seq" bigint GENERATED ALWAYS AS IDENTITY (sequence name "outbox_seq_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"lane" bigint NOT NULL,
	"aggregate_type" text NOT NULL,
	"aggregate_id" text NOT NULL,
	"event_type" text NOT NULL,
	"topic" text NOT NULL,
	"payload" json NOT NULL,
	"headers" json NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"max_attempts" integer NOT NULL,
	"available_at" timestamp with time zone NOT NULL,
	"lease_token" uuid,
	"worker_id" text,
	"occurred_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"published_at" timestamp with time zone,
	"last_attempt_at" timestamp with time zone,
	"last_error" text,
	CONSTRAINT "outbox_status_check" CHECK ("outbox"."status" in ('pending', 'failed', 'published', 'dead_letter'))
);
--> statement-breakpoint
CREATE INDEX "outbox_due_idx" ON "outbox" USING btree ("topic","available_at","seq") WHERE "outbox"."topic" <> '' and "outbox"."status" in ('pending', 'failed');--> statement-breakpoint
CREATE INDEX "outbox_lane_idx" ON "outbox" USING btree ("lane","seq") WHERE "outbox"."lane" >= 0 and "outbox"."status" in ('pending', 'failed');--> statement-breakpoint
CREATE INDEX "outbox_dead_lane_idx" ON "outbox" USING btree ("lane","seq") WHERE "outbox"."lane" >= 0 and "outbox"."status" = 'dead_letter';--> statement-breakpoint
CREATE INDEX "outbox_dead_idx" ON "outbox" USING btree ("seq") WHERE "outbox"."seq" > 0 and "outbox"."status" = 'dead_letter';