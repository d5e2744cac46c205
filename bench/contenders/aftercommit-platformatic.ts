// This library, on @platformatic/kafka.
import { platformaticKafkaPublisher } from '../../dist/publishers/platformatic-kafka/platformatic-kafka-publisher.js'
import { makeAftercommit } from '../aftercommit.ts'
import type { MakeContender } from '../contender.ts'
import { measuredClient } from '../platformatic.ts'

export const make: MakeContender = (stage) =>
  makeAftercommit(stage, platformaticKafkaPublisher({ client: measuredClient(stage) }))
