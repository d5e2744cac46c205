// Version 2 of @platformatic/kafka needs a newer Node than the project. npm brings both, into the checkout's .cache folder,
// and a copy of the sources runs beside them: Node looks for packages in the folder of the file that imports them and then
// in each folder above, so the copy, and every process that its tests start, finds version 2 there and all the rest in the
// checkout. Nothing is replaced or aliased, and test/integration/versions.test.ts checks what was found.
import { execFile } from 'node:child_process'
import { cp, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cachePath, fetchOnce } from '../../support/servers/download-cache.ts'
import { createOwnedFolder } from '../../support/servers/owned-folder.ts'

export const NEWER_CLIENT = '2.12.1'
export const NEWER_NODE = '24.21.0'

export interface Workplace {
  readonly node: string
  readonly folder: string
  remove(): Promise<void>
}

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const COPIED = [
  'src',
  'test',
  'docs',
  'drizzle',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
]

export async function prepareNewerClient(): Promise<Workplace> {
  const installed = await fetchOnce(
    cachePath(`platformatic-kafka-${NEWER_CLIENT}-node-${NEWER_NODE}`),
    async ({ path }) => {
      await writeFile(join(path, 'package.json'), JSON.stringify({ private: true }))
      const packages = [`@platformatic/kafka@${NEWER_CLIENT}`, `node@${NEWER_NODE}`]
      await run('npm', ['install', '--no-audit', '--no-fund', ...packages], { cwd: path })
      return path
    },
  )
  const copy = await createOwnedFolder('checkout-', installed)
  for (const name of COPIED) {
    await cp(join(ROOT, name), join(copy.path, name), { recursive: true })
  }
  await symlink(join(ROOT, '.cache'), join(copy.path, '.cache'))
  return {
    node: join(installed, 'node_modules/node/bin/node'),
    folder: copy.path,
    remove: () => copy.remove(),
  }
}
