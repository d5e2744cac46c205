// On CI what is missing is a failure, not a reason to skip: a green run never means "not tested".
export function isContinuousIntegration(): boolean {
  return !['', '0', 'false'].includes(process.env['CI'] ?? '')
}

/** A cell of the matrix is named after its Kafka, so it demands one wherever it runs. */
export function isKafkaDemanded(): boolean {
  return isContinuousIntegration() || process.env['KAFKA_REQUIRED'] === 'true'
}
