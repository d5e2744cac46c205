// The library as another commit has it, built into a folder of its own. It shares the installed packages of this one, so that
// only the library differs: clients and the ORM are the same for both.
import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createOwnedFolder } from '../../support/servers/owned-folder.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const run = promisify(execFile)

export interface Build {
  /** What holds dist/ and drizzle/. */
  readonly folder: string
  remove(): Promise<void>
}

/** `ref`: a commit, or null for the working tree. */
export async function buildOf(ref: string | null): Promise<Build> {
  const owned = await createOwnedFolder('aftercommit-build-')
  const { path } = owned
  const parts = ['src', 'drizzle', 'package.json', 'tsconfig.json', 'tsconfig.build.json']
  const copy =
    ref === null
      ? `cp -R ${parts.join(' ')} "$0"`
      : `git archive "$1" ${parts.join(' ')} | tar -x -C "$0"`
  await run('sh', ['-ec', copy, path, ref ?? ''], { cwd: root })
  await symlink(join(root, 'node_modules'), join(path, 'node_modules'))
  const tsc = join(root, 'node_modules/.bin/tsc')
  await run(tsc, ['-p', join(path, 'tsconfig.build.json')]).catch(
    ({ stdout }: { stdout: string }) => {
      throw new Error(`${ref ?? 'the working tree'} does not compile: ${stdout}`)
    },
  )
  return { folder: path, remove: () => owned.remove() }
}

/** The version before this one: the last tag, and before there is any, what was there before the migrations changed last. */
export async function lastVersion(): Promise<string> {
  const git = async (...args: string[]) => (await run('git', args, { cwd: root })).stdout.trim()
  return await git('describe', '--tags', '--abbrev=0').catch(async () => {
    const changed = await git('log', '-1', '--format=%h', '--', 'drizzle')
    return await git('rev-parse', '--short', `${changed}^`)
  })
}
