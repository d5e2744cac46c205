// The result of a request, partition by partition. A success lists the offset of each partition. A failure may still carry
// acks: of brokers that responded, under `produced`, and of partitions that the same broker did write, in its response.
// Partitions without a response failed with the error of the request.
import type { ProduceResult } from '@platformatic/kafka'
import { toError } from '../../errors.ts'
import { findObstacle } from '../kafka/access.ts'

/** Where the first message of a partition is stored, or why none is; 'missing' if a response has neither. */
export type PartitionAnswer = { readonly offset: bigint } | { readonly error: Error } | 'missing'

export interface Answer {
  readonly of: (partition: number) => PartitionAnswer
  /** Whether every partition was written. */
  readonly isComplete: boolean
  /** Whether some broker did not respond at all. */
  readonly isSilent: boolean
}

/** The protocol's response to a request. Newer versions name the topic by its id, so only partitions are read. */
interface ProduceResponse {
  readonly responses?: readonly {
    readonly partitionResponses: readonly {
      readonly index: number
      readonly errorCode: number
      readonly baseOffset: bigint
    }[]
  }[]
}

/** The parts of the client's errors that are read. Copies of the package have classes of their own. */
interface ClientError extends Error {
  readonly errors?: readonly ClientError[]
  readonly produced?: ProduceResult
  readonly response?: ProduceResponse
  readonly apiId?: string
}

export function readSuccess({ offsets = [] }: ProduceResult): Answer {
  const acked = new Map(offsets.map(({ partition, offset }) => [partition, offset]))
  return {
    isComplete: true,
    isSilent: false,
    of: (partition) => {
      const offset = acked.get(partition)
      return offset === undefined ? 'missing' : { offset }
    },
  }
}

export function readFailure(thrown: unknown): Answer {
  const error = toError(thrown) as ClientError
  const answers = new Map<number, PartitionAnswer>()
  const unanswered: Error[] = []
  for (const { partition, offset } of error.produced?.offsets ?? []) {
    answers.set(partition, { offset })
  }
  for (const one of flatten(error)) {
    const partitions = one.response?.responses?.flatMap((topic) => topic.partitionResponses)
    if (!partitions) unanswered.push(networkCause(one))
    for (const { index, errorCode, baseOffset } of partitions ?? []) {
      if (errorCode === 0) answers.set(index, { offset: baseOffset })
      else answers.set(index, { error: refusalOf(one, errorCode) })
    }
  }
  return {
    isComplete: false,
    isSilent: unanswered.length > 0,
    of: (partition) => answers.get(partition) ?? { error: mostTelling(unanswered) ?? error },
  }
}

/** The errors of all brokers, each as the client reports it for one request. */
function flatten(error: ClientError): ClientError[] {
  return error.response || !error.errors ? [error] : error.errors.flatMap(flatten)
}

/** The client only reports that a connection failed. Its cause has the reason. */
function networkCause(error: ClientError): Error {
  const { code, cause } = error as ClientError & { readonly code?: unknown }
  return code === 'PLT_KFK_NETWORK' && cause instanceof Error ? cause : error
}

/** Why the client could reach none of its brokers. `ofSocket` explains more if a server closed the connection. */
export function connectError(thrown: unknown, ofSocket: Error | null): Error {
  const error = mostTelling(flatten(toError(thrown)).map(networkCause))!
  return error.message === 'Connection closed' ? (ofSocket ?? error) : error
}

/** While one broker is down, another may refuse the credentials. */
function mostTelling(errors: readonly Error[]): Error | undefined {
  return errors.find((one) => findObstacle(one)) ?? errors[0]
}

/** The protocol's error with this code, of those in a response. */
function refusalOf(response: ClientError, code: number): Error {
  const found = response.errors?.find((one) => (one as { apiCode?: unknown }).apiCode === code)
  return found ?? response
}

/** The protocol's name for an error, such as `MESSAGE_TOO_LARGE`; '' if no broker gave one. */
export function protocolName(error: Error): string {
  const { apiId, errors } = error as ClientError
  if (apiId !== undefined) return apiId
  // For a missing topic, the client replaces the protocol's error by one without a code.
  if (error.message.startsWith('Unknown topic')) return 'UNKNOWN_TOPIC_OR_PARTITION'
  for (const one of errors ?? []) {
    const name = protocolName(one)
    if (name) return name
  }
  return error.cause instanceof Error ? protocolName(error.cause) : ''
}

/** Whether the client gave up waiting. What it waited for may still happen. */
export function isTimeout(error: Error): boolean {
  return /timed out/i.test(error.message)
}
