// The PostgreSQL programs in a place where the user that runs them can reach them: where that is not us, it
// cannot enter a checkout inside a private folder such as one from `mktemp -d`.
import { execFile } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { OwnedFolder } from './owned-folder.ts'
import { findNativeFolder } from './postgres-release.ts'
import { createReachableFolder, findIdentity, succeeds } from './postgres-user.ts'
import type { ProcessIdentity } from './server-process.ts'

export type PostgresInstallation = {
  folder: OwnedFolder
  identity: ProcessIdentity | undefined
  initdb: string
  postgres: string
}

const run = promisify(execFile)

export async function preparePostgres(): Promise<PostgresInstallation> {
  const identity = await findIdentity()
  const folder = await createReachableFolder('aftercommit-postgres-', identity)
  try {
    let native = await findNativeFolder()
    const postgres = join(native, 'bin', 'postgres')
    if (identity && !(await succeeds(postgres, ['--version'], identity))) {
      const copy = join(folder.path, 'native')
      await cp(native, copy, { recursive: true, verbatimSymlinks: true })
      await run('chown', ['-R', `${identity.uid}:${identity.gid}`, copy])
      native = copy
    }
    const program = (name: string) => join(native, 'bin', name)
    return { folder, identity, initdb: program('initdb'), postgres: program('postgres') }
  } catch (error) {
    await folder.remove()
    throw error
  }
}
