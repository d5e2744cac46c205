import { defineConfig } from 'drizzle-kit'

// `npm run migrations:inbox -- --name what_changes`: drizzle-kit invents a name when none is given.
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/store/inbox/table.ts',
  out: './drizzle/inbox',
})
