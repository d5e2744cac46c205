// Messages from memory, on @platformatic/kafka.
import type { MakeContender } from '../contender.ts'
import { makeFromMemory } from '../from-memory.ts'
import { platformaticSender } from '../platformatic.ts'

export const make: MakeContender = (stage) => makeFromMemory(platformaticSender(stage))
