// A dual write, on kafkajs.
import type { MakeContender } from '../contender.ts'
import { makeDualWrite } from '../dual-write.ts'
import { kafkajsSender } from '../kafkajs.ts'

export const make: MakeContender = (stage) => makeDualWrite(stage, kafkajsSender(stage))
