// How our statements run on Prisma, and what it returns. Described by shape, so that no user has to install Prisma for it.
import type { Executor } from './driver.ts'
import type { Statement } from './sql.ts'
import { adapterCauseOf } from './sql-state.ts'

/** A client of Prisma or a transaction of it. */
export interface PrismaRaw {
  // oxlint-disable-next-line typescript/no-explicit-any
  $queryRawUnsafe(text: string, ...values: any[]): any
}

/** What emitIn() accepts of Prisma: what $transaction() passes to its callback. */
export interface PrismaOwn extends PrismaRaw {
  readonly $connect?: never
}

export async function queryPrisma(
  client: PrismaRaw,
  { text, values }: Statement,
): Promise<unknown[]> {
  try {
    return (await client.$queryRawUnsafe(text, ...values)) as unknown[]
  } catch (thrown) {
    throw postgresError(thrown)
  }
}

/** The error that Postgres gave as the reason, as far as Prisma keeps it. The rest of the library reads code and message. */
function postgresError(thrown: unknown): unknown {
  const cause = adapterCauseOf(thrown)
  if (!cause) return thrown
  const { originalMessage: message, originalCode: code } = cause
  return Object.assign(new Error(String(message)), { code })
}

export function isPrisma(value: unknown): value is PrismaRaw {
  return typeof (value as Partial<PrismaRaw> | null | undefined)?.$queryRawUnsafe === 'function'
}

/** Whether this is what $transaction() passes to its callback: it cannot connect. */
export function isPrismaTransaction(value: unknown): value is PrismaRaw {
  return isPrisma(value) && typeof (value as { $connect?: unknown }).$connect !== 'function'
}

/** null: it is a client without a transaction. */
export function prismaExecutor(client: PrismaRaw): Executor | null {
  if (!isPrismaTransaction(client)) return null
  return { query: (statement) => queryPrisma(client, statement) }
}
