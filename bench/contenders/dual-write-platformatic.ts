// A dual write, on @platformatic/kafka.
import type { MakeContender } from '../contender.ts'
import { makeDualWrite } from '../dual-write.ts'
import { platformaticSender } from '../platformatic.ts'

export const make: MakeContender = (stage) => makeDualWrite(stage, platformaticSender(stage))
