-- For relay: 'cdc'. Null in all other rows, where it takes no space. Adding it changes no row, so saves wait only for a moment.
ALTER TABLE "outbox" ADD COLUMN "cdc_occurred_at" text;