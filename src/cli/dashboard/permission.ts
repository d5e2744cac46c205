// Whether changes can be made through the connection of the command. Asked again until they can: the tables may be made, rights
// granted and a standby promoted while the dashboard runs.
import { performance } from 'node:perf_hooks'
import type { Session } from '../context.ts'

/** As often as a page refreshes. */
const AGAIN_MS = 5_000

export class Permission {
  readonly #session: Pick<Session, 'doctor' | 'table'>
  readonly #isReadOnly: boolean
  #reason: string | null = ''
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(session: Pick<Session, 'doctor' | 'table'>, isReadOnly: boolean) {
    this.#session = session
    this.#isReadOnly = isReadOnly
  }

  /** Why nothing can be changed; null if it can. */
  async whyReadOnly(): Promise<string | null> {
    this.#askedAt = performance.now()
    this.#reason = this.#isReadOnly ? '--read-only' : await this.#ask()
    return this.#reason
  }

  /** False while the database cannot be asked: then there is nothing to see either. */
  async mayAct(): Promise<boolean> {
    const isOld = performance.now() - this.#askedAt >= AGAIN_MS
    if (this.#reason === null || !isOld) return this.#reason === null
    return (await this.whyReadOnly().catch(() => '')) === null
  }

  async #ask(): Promise<string | null> {
    const { doctor, table } = this.#session
    const { isStandby, role } = await doctor.server()
    if (isStandby) return 'the server is a standby'
    const { tables } = await doctor.grants([table.name], [])
    if (tables.length === 0) {
      return `there is no table ${table.schema}.${table.name} yet; aftercommit migrate makes it`
    }
    // Enough to retry and to move. What it may not, such as to delete, the database refuses.
    const mayChange = tables.some(({ granted }) => granted.includes('update'))
    return mayChange ? null : `the role ${role} may only read`
  }
}
