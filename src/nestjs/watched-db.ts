// The watched database as a provider. Nest calls the hooks of every provider, and a handle such as a PrismaService has hooks
// of its own, which Nest already calls on the service: here they must not be found a second time.
import { OutboxOptionsError } from '../errors.ts'

const HOOKS = new Set<string | symbol>([
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
])

/** null: the driver has no transactions to watch, as node-postgres. */
export function watchedDb(outbox: { readonly db: unknown }): object | null {
  const db = handleOf(outbox)
  if (!db || ![...HOOKS].some((hook) => hook in db)) return db
  return new Proxy(db, {
    get: (target, property) => {
      return HOOKS.has(property) ? undefined : (Reflect.get(target, property) as unknown)
    },
  })
}

function handleOf(outbox: { readonly db: unknown }): object | null {
  try {
    return outbox.db as object
  } catch (error) {
    if (error instanceof OutboxOptionsError) return null
    throw error
  }
}
