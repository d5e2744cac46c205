// A file system of a few megabytes, for a disk that is really full. It takes the right to mount: root's.
import { execFile } from 'node:child_process'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isContinuousIntegration } from '../run/continuous-integration.ts'
import { createReachableFolder, findIdentity } from './postgres-user.ts'

export type SmallDisk = {
  readonly path: string
  /** Leaves no byte free. */
  fill(): Promise<void>
  /** Makes room again. */
  free(): Promise<void>
  stop(): Promise<void>
}

const run = promisify(execFile)
const CHUNK = Buffer.alloc(64 * 1024)
const PAGE = 4 * 1024

/** Why there is none; on CI that is a failure, so that a green run never means "not tested". */
export async function explainMissingDisk(): Promise<string | null> {
  try {
    const disk = await mountSmallDisk(1)
    await disk.stop()
    return null
  } catch (error) {
    if (isContinuousIntegration()) throw error
    return `mount is not permitted (${(error as Error).message}); run the tests as root`
  }
}

/** Postgres may write to it. */
export async function mountSmallDisk(megabytes: number): Promise<SmallDisk> {
  const identity = await findIdentity()
  const folder = await createReachableFolder('aftercommit-disk-', identity)
  const owner = identity ? `,uid=${identity.uid},gid=${identity.gid}` : ''
  const options = `size=${megabytes}m,mode=0700${owner}`
  try {
    await run('mount', ['-t', 'tmpfs', '-o', options, 'aftercommit', folder.path])
  } catch (error) {
    await folder.remove()
    throw error
  }
  const filler = join(folder.path, 'filler')
  return {
    path: folder.path,
    async fill() {
      const file = await open(filler, 'a')
      try {
        for (const chunk of [CHUNK, CHUNK.subarray(0, PAGE)]) await writeUntilFull(file, chunk)
      } finally {
        await file.close()
      }
    },
    free: () => rm(filler, { force: true }),
    async stop() {
      await run('umount', [folder.path])
      await folder.remove()
    },
  }
}

async function writeUntilFull(
  file: Awaited<ReturnType<typeof open>>,
  chunk: Buffer,
): Promise<void> {
  for (;;) {
    try {
      await file.write(chunk)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return
      throw error
    }
  }
}
