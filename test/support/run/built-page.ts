// The page of the dashboard as the build makes it: a server that runs from src reads it from dist. Built once, before the
// tests begin, so that no worker reads what another one writes.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../../', import.meta.url))

export async function buildPage(folder = 'dist/dashboard/page'): Promise<void> {
  const env = { ...process.env, PAGE_OUT: folder }
  // A cell of the matrix has its own few packages, and runs no test of the page.
  if (!existsSync(join(root, 'node_modules/preact'))) return
  await promisify(execFile)('npm', ['run', '--silent', 'build:page'], { cwd: root, env })
}
