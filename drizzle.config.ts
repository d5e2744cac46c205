import { defineConfig } from 'drizzle-kit'

// `npm run migrations -- --name what_changes`: drizzle-kit invents a name when none is given.
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/store/outbox/table.ts',
  out: './drizzle',
})
