// Finds and loads the config file. TypeScript is left to the runtime: Node from 22.18 on, Bun, or a loader such as tsx.
import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rejectUnknown, requireName } from '../checks/checks.ts'
import { messageOf, OutboxOptionsError } from '../errors.ts'
import { CliError, usageError } from './cli-error.ts'
import type { CliConfig } from './config.ts'
import { EXIT } from './exit-codes.ts'

const NAMES = ['ts', 'mts', 'js', 'mjs'].map((ending) => `aftercommit.config.${ending}`)

/** `given`: the path, undefined to look in the folder, or false for no config. */
export async function loadConfig(
  given: string | false | undefined,
  folder: string,
): Promise<CliConfig> {
  if (given === false) return {}
  const path = given === undefined ? await find(folder) : resolve(folder, given)
  if (path === null) return {}
  if (!(await exists(path))) {
    throw usageError(`there is no config file ${path}; check --config`)
  }
  return check(path, await load(path))
}

async function find(folder: string): Promise<string | null> {
  for (const name of NAMES) {
    const path = resolve(folder, name)
    if (await exists(path)) return path
  }
  return null
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

async function load(path: string): Promise<unknown> {
  try {
    return ((await import(pathToFileURL(path).href)) as { default?: unknown }).default
  } catch (cause) {
    if ((cause as { code?: unknown }).code === 'ERR_UNKNOWN_FILE_EXTENSION') {
      throw usageError(
        `Node ${process.versions.node} cannot load ${path}, which is TypeScript; use Node 22.18 or later, or Bun; or install tsx and set NODE_OPTIONS='--import tsx'; or write aftercommit.config.mjs instead`,
      )
    }
    const message = `could not load ${path}: ${messageOf(cause)}; fix it, or pass --no-config to do without`
    throw new CliError(EXIT.failed, message, { cause })
  }
}

function check(path: string, config: unknown): CliConfig {
  if (typeof config !== 'object' || config === null) {
    throw usageError(`${path} has no default export; write export default defineConfig({ ... })`)
  }
  rejectUnknown(path, config, ['databaseUrl', 'schema', 'table', 'outbox'])
  const { databaseUrl, outbox } = config as CliConfig
  if (databaseUrl !== undefined) requireName(`${path}: databaseUrl`, databaseUrl)
  if (outbox !== undefined && typeof outbox !== 'function') {
    throw new OutboxOptionsError(
      `${path}: outbox must be a function that returns what createOutbox() returns`,
    )
  }
  return config
}
