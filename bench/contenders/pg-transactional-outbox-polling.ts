// pg-transactional-outbox, by polling.
import type { MakeContender } from '../contender.ts'
import { makePgTransactionalOutbox } from '../pg-transactional-outbox.ts'

export const make: MakeContender = (stage) => makePgTransactionalOutbox(stage, 'polling')
