// Messages from memory, on kafkajs.
import type { MakeContender } from '../contender.ts'
import { makeFromMemory } from '../from-memory.ts'
import { kafkajsSender } from '../kafkajs.ts'

export const make: MakeContender = (stage) => makeFromMemory(kafkajsSender(stage))
