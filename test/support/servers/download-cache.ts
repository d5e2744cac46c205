// What the tests fetch once per checkout, in its .cache folder. A download gets its final name by one
// rename, so one that was cut short is never taken for a complete one.
import { access, mkdir, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createOwnedFolder, type OwnedFolder } from './owned-folder.ts'

export function cachePath(name: string): string {
  return fileURLToPath(new URL(`../../../.cache/${name}`, import.meta.url))
}

export function isCached(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** `fetch` answers where in the folder it put what is to be kept under the path. */
export async function fetchOnce(
  path: string,
  fetch: (folder: OwnedFolder) => Promise<string>,
): Promise<string> {
  if (await isCached(path)) return path
  await mkdir(dirname(path), { recursive: true })
  const folder = await createOwnedFolder('fetching-', dirname(path))
  try {
    // Another process that was quicker leaves the same files in place.
    await rename(await fetch(folder), path).catch(async (error: unknown) => {
      if (!(await isCached(path))) throw error
    })
  } finally {
    await folder.remove()
  }
  return path
}
