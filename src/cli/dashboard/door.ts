// Who gets in. Without a token, only what is on this machine can connect.
import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../../dashboard/hosts.ts'
import type { Access } from '../../dashboard/options.ts'
import { usageError } from '../cli-error.ts'

export interface DoorOptions {
  readonly host: string
  readonly token?: string
}

const SHORTEST_TOKEN = 16

/** Before it listens. */
export function checkDoor({ host, token }: DoorOptions): void {
  if (token !== undefined && !/^[!-~]+$/.test(token)) {
    throw usageError('the token must be printable ASCII without spaces, such as a long hex number')
  }
  if (token !== undefined && token.length < SHORTEST_TOKEN) {
    throw usageError(
      `the token must have at least ${SHORTEST_TOKEN} characters; openssl rand -hex 24 makes a good one`,
    )
  }
  if (token === undefined && !isLoopback(host)) {
    throw usageError(
      `without a token the dashboard listens on this machine only, not on ${host}; set AFTERCOMMIT_TOKEN, or leave out --host`,
    )
  }
}

export function doorKeeper(
  token: string | undefined,
  accessNow: () => Promise<Access>,
): (request: Request) => Promise<Access | null> {
  if (token === undefined) return accessNow
  const expected = digest(`Bearer ${token}`)
  return async ({ headers }) => {
    const given = digest(headers.get('authorization') ?? '')
    return timingSafeEqual(given, expected) ? await accessNow() : null
  }
}

/** Of one length, whatever was given. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
