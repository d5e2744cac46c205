// Who took part, by version. Figures without it say little a year later.
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import type { Arena } from './arena.ts'

const PACKAGES = [
  'kafkajs',
  '@platformatic/kafka',
  'postgres',
  'pg',
  'drizzle-orm',
  'pg-transactional-outbox',
  'graphile-worker',
  '@nest-native/messaging',
  'pg-boss',
]

export async function readVersions(arena: Arena): Promise<Record<string, string>> {
  const versions: Record<string, string> = {
    aftercommit: await readVersion(new URL('../package.json', import.meta.url)),
    node: process.versions.node,
    ...(await arena.versions()),
    cores: String(availableParallelism()),
  }
  for (const name of PACKAGES) versions[name] = await versionOf(name)
  return versions
}

async function versionOf(name: string): Promise<string> {
  for (const folder of ['./node_modules/', '../node_modules/']) {
    try {
      const file = new URL(`${folder}${name}/package.json`, import.meta.url)
      return await readVersion(file)
    } catch {
      // In the other folder, then.
    }
  }
  return 'unknown'
}

async function readVersion(file: URL): Promise<string> {
  return (JSON.parse(await readFile(file, 'utf8')) as { version: string }).version
}
