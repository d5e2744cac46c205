// A migration only adds, so that instances of the version before it go on. What cannot keep to that says so in its name.
import { readdir, readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'

const folder = new URL('../../../drizzle/', import.meta.url)

/** Of the first version. No older one has to work with what they make. */
const BASELINE = [
  '0000_create_outbox.sql',
  '0001_follows.sql',
  '0002_control.sql',
  '0003_failed.sql',
  '0004_scheduled.sql',
  'inbox/0000_create_inbox.sql',
  // The switch to partitions itself, which every version knows.
  'partitioned/0000_partitions.sql',
]

const FORBIDDEN: readonly [RegExp, string][] = [
  [/\bdrop\s+(table|column|function|index)\b/i, 'drops what an older version may use'],
  [/\brename\b/i, 'renames what an older version knows by its old name'],
  [/\balter\s+column\b.*\b(type|set\s+not\s+null)\b/i, 'changes a column that is in use'],
  [
    /\badd\s+column\b(?!.*\bdefault\b).*\bnot\s+null\b/i,
    'adds a column that an older version leaves out',
  ],
  [
    /\badd\s+constraint\b(?!.*\bnot\s+valid\b)/i,
    'reads the whole table under a lock; add it NOT VALID',
  ],
  [
    /\bcreate\s+(unique\s+)?index\b(?!\s+if\s+not\s+exists\b)/i,
    'builds an index that cannot be made beforehand; add IF NOT EXISTS',
  ],
]

/** What is wrong with a migration, statement by statement. */
function problemsOf(text: string): string[] {
  const statements = text.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').split(';')
  return statements.flatMap((statement) =>
    FORBIDDEN.filter(([pattern]) => pattern.test(statement)).map(([, why]) => why),
  )
}

describe('a migration', () => {
  it.each([
    'ALTER TABLE "outbox" DROP COLUMN "topic";',
    'DROP TABLE "outbox_pauses";',
    'DROP INDEX "outbox_due_idx";',
    'ALTER TABLE "outbox" RENAME COLUMN "topic" TO "target";',
    'ALTER TABLE "outbox" ALTER COLUMN "attempts" TYPE bigint;',
    'ALTER TABLE "outbox" ALTER COLUMN "worker_id" SET NOT NULL;',
    'ALTER TABLE "outbox" ADD COLUMN "tenant" text NOT NULL;',
    'ALTER TABLE "outbox" ADD CONSTRAINT "c" CHECK (true);',
    'CREATE INDEX "outbox_new_idx" ON "outbox" ("seq");',
  ])('may not: %s', (statement) => {
    expect(problemsOf(statement)).toHaveLength(1)
  })

  it.each([
    'ALTER TABLE "outbox" ADD COLUMN "tenant" text;',
    `ALTER TABLE "outbox" ADD COLUMN "tenant" text DEFAULT '' NOT NULL;`,
    'ALTER TABLE "outbox" ADD CONSTRAINT "c" CHECK (true) NOT VALID;',
    'CREATE INDEX IF NOT EXISTS "outbox_new_idx" ON "outbox" ("seq");',
    '-- DROP TABLE "outbox";',
  ])('may: %s', (statement) => {
    expect(problemsOf(statement)).toEqual([])
  })

  it('keeps to these rules, or has _breaking_ in its name', async () => {
    const names = (await readdir(folder, { recursive: true })).filter((name) =>
      name.endsWith('.sql'),
    )
    expect(names).toEqual(expect.arrayContaining(BASELINE))
    for (const name of names) {
      if (BASELINE.includes(name) || name.includes('_breaking_')) continue
      expect([name, ...problemsOf(await readFile(new URL(name, folder), 'utf8'))]).toEqual([name])
    }
  })
})
