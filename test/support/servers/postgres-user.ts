// The user that PostgreSQL and PgBouncer run as. Both refuse to run as root; then the user postgres stands
// in, who may not enter every folder that root may.
import { execFile } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { createOwnedFolder, type OwnedFolder } from './owned-folder.ts'
import type { ProcessIdentity } from './server-process.ts'

const run = promisify(execFile)
const user = 'postgres'

/** Who stands in, or undefined when nobody has to. */
export async function findIdentity(): Promise<ProcessIdentity | undefined> {
  return process.getuid?.() === 0 ? findOrCreateUser() : undefined
}

/** A folder of our own that the identity can enter. */
export async function createReachableFolder(
  prefix: string,
  identity: ProcessIdentity | undefined,
): Promise<OwnedFolder> {
  const folder = await createOwnedFolder(prefix, await findReachable(identity))
  if (identity) await chmod(folder.path, 0o711)
  return folder
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

export async function succeeds(
  command: string,
  args: readonly string[],
  identity: ProcessIdentity,
): Promise<boolean> {
  return run(command, args, { ...identity, cwd: '/' }).then(
    () => true,
    () => false,
  )
}
