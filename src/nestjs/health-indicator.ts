// The health of an outbox as @nestjs/terminus takes it. Terminus looks at the result alone, so nothing of it is imported.
import type { HealthLimits, OutboxHealth } from '../upkeep/health.ts'

export type OutboxHealthResult<Key extends string = string> = Record<
  Key,
  { readonly status: 'up' | 'down' } & Record<string, unknown>
>

export class OutboxHealthIndicator {
  readonly #outbox: { health(limits?: HealthLimits): Promise<OutboxHealth> }

  /** The module provides it for the outbox without a name; make one yourself for any other. */
  constructor(outbox: { health(limits?: HealthLimits): Promise<OutboxHealth> }) {
    this.#outbox = outbox
  }

  /** `down` if a number exceeds its limit; `flags` lists which, as in outbox.health(). Never rejects because of the database. */
  async isHealthy<const Key extends string>(
    key: Key,
    limits?: HealthLimits,
  ): Promise<OutboxHealthResult<Key>> {
    const { ok, flags, stats } = await this.#outbox.health(limits)
    const result = {
      status: ok ? 'up' : 'down',
      ...(flags.length > 0 && {
        flags: Object.fromEntries(flags.map((one) => [one.flag, one.message])),
      }),
      ...(stats && { pending: stats.pending.count, deadLetters: stats.dead.count }),
    } as const
    return { [key]: result } as OutboxHealthResult<Key>
  }
}
