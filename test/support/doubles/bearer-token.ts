// Tokens for the broker of secure-kafka.ts: JSON web tokens without a signature, which Kafka accepts in tests alone.

/** A token of that subject which ends so many seconds from now; a negative number makes one that has expired. */
export function unsignedToken(subject: string, seconds: number): string {
  const now = Date.now() / 1_000
  // In fractions of a second, which Kafka allows. Issued in the past, so that clocks need not agree to the millisecond.
  const claims = { sub: subject, iat: now - 600, exp: now + seconds }
  return `${encode({ alg: 'none' })}.${encode(claims)}.`
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
