// This library, on kafkajs.
import { kafkaPublisher } from '../../dist/publishers/kafka/kafka-publisher.js'
import { makeAftercommit } from '../aftercommit.ts'
import type { MakeContender } from '../contender.ts'

export const make: MakeContender = (stage) =>
  makeAftercommit(stage, kafkaPublisher({ kafka: stage.kafka }))
