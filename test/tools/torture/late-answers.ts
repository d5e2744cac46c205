// A database whose answers come late: the answer to COMMIT, when others see the rows already, and those to the record of
// outcomes, to a cancellation and to what makes scheduled events due, before or after these took effect. In between an
// instance knows less than its table says.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { DrizzleDatabase } from '../../../src/index.ts'
import type { Random } from './random.ts'

const answeredAfterMs = new AsyncLocalStorage<number>()

/** Runs a unit of work that hears so much later that it has committed. */
export function withLateAnswer<T>(ms: number, unit: () => T): T {
  return answeredAfterMs.run(ms, unit)
}

export function answerLate(db: DrizzleDatabase, random: Random): DrizzleDatabase {
  const transaction: DrizzleDatabase['transaction'] = async (work, config) => {
    const result = await db.transaction(work, config)
    await delay(answeredAfterMs.getStore() ?? 0)
    return result
  }
  const execute: DrizzleDatabase['execute'] = async (query) => {
    const ms = drawMs(query.getSQL().toQuery().sql, random)
    const isBefore = random.chance(0.5)
    if (isBefore) await delay(ms)
    const result = await db.execute(query)
    if (!isBefore) await delay(ms)
    return result
  }
  return Object.assign(Object.create(db) as DrizzleDatabase, { transaction, execute })
}

/** By the comment in which the outbox names its statements. What was not sent is recorded more rarely. */
function drawMs(text: string, random: Random): number {
  const isSlow =
    (text.includes('record what failed') && random.chance(0.6)) ||
    (text.includes('record what was published') && random.chance(0.01)) ||
    (text.includes('make scheduled events due') && random.chance(0.1)) ||
    (text.includes('cancel an event') && random.chance(0.2))
  if (!isSlow) return 0
  return random.pick([
    [98, random.between(5, 800)],
    // Longer than the threshold.
    [2, 2_500],
  ])
}
