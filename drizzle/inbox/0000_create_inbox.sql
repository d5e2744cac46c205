CREATE TABLE "inbox" (
	"consumer" text NOT NULL,
	"event_id" text NOT NULL,
	"aggregate_type" text,
	"aggregate_id" text,
	"lane" bigint,
	"seq" bigint,
	"handled_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "inbox_pkey" PRIMARY KEY("consumer","event_id")
);
--> statement-breakpoint
CREATE INDEX "inbox_lane_idx" ON "inbox" USING btree ("consumer","aggregate_type","aggregate_id","lane","seq") WHERE "inbox"."seq" is not null;--> statement-breakpoint
CREATE INDEX "inbox_handled_idx" ON "inbox" USING btree ("consumer","handled_at");