// What is said when a request is refused or fails: a status, a code and a sentence. Never a stack, nor the text of an error of
// the database, which may name hosts and rows; the log has it.
import { messageOf, OutboxError, OutboxOptionsError, StoreError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { isDenied, isLocked, isReadOnly } from '../store/database.ts'

export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export function badRequest(message: string): RefusedError {
  return new RefusedError(400, 'BAD_REQUEST', message)
}

/** By the code of a StoreError. */
const STORE_FAILED: Readonly<Record<string, string>> = {
  STORE_TIMEOUT: 'the database did not respond in time',
  TABLE_MISSING:
    'the tables of the outbox are missing, or those of another version; call migrate()',
}

const UNREACHABLE =
  'the database could not be reached, or refused; the log of this server has the reason'

const LOCKED =
  'another session holds a lock on these events, so nothing more was read or changed; try again, and if it stays so, the doctor names old transactions'

/** `why`: which session holds the lock, if that is known. */
export function refuseLocked(why: string): RefusedError {
  return new RefusedError(503, 'LOCKED', why)
}

/** Logs what the response leaves out. */
export function toRefusal(thrown: unknown, logger: Logger): RefusedError {
  if (thrown instanceof RefusedError) return thrown
  if (thrown instanceof OutboxOptionsError) return badRequest(thrown.message)
  if (isDenied(thrown) || isReadOnly(thrown)) {
    logger.warn({ err: thrown }, 'the database refused an action of the dashboard')
    return new RefusedError(
      403,
      'ROLE_MAY_NOT',
      'the database role of this server may not do that, so nothing was changed; use a role that has the right',
    )
  }
  if (isLocked(thrown)) return refuseLocked(LOCKED)
  if (thrown instanceof StoreError) {
    const { code } = thrown
    logger.warn({ err: thrown }, 'the dashboard could not query the database')
    return new RefusedError(503, code, STORE_FAILED[code] ?? UNREACHABLE)
  }
  if (thrown instanceof OutboxError) return new RefusedError(409, thrown.code, messageOf(thrown))
  logger.error({ err: thrown }, 'a request of the dashboard failed')
  return new RefusedError(500, 'FAILED', 'the server failed; its log has the reason')
}
