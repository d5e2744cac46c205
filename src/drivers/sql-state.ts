// Postgres's own code of an error that a client threw. Most clients put it into `code`; Prisma has codes of its own there.

/** Prisma's code for a failed serialization and for a deadlock. */
const WRITE_CONFLICT = 'P2034'

interface Thrown {
  readonly code?: unknown
  readonly cause?: AdapterCause
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: AdapterCause } }
}

/** What an adapter of Prisma keeps of the error. */
interface AdapterCause {
  readonly originalCode?: unknown
  readonly originalMessage?: unknown
}

export function sqlStateOf(error: unknown): unknown {
  const { code } = (error ?? {}) as Thrown
  return code === WRITE_CONFLICT ? '40001' : (adapterCauseOf(error)?.originalCode ?? code)
}

/** null: it is no error of a Prisma adapter. */
export function adapterCauseOf(error: unknown): AdapterCause | null {
  const { cause, meta } = (error ?? {}) as Thrown
  const found = meta?.driverAdapterError?.cause ?? cause
  return typeof found?.originalCode === 'string' ? found : null
}
