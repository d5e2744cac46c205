// The checks that are exported for publishers from outside, as tests. Each publisher's own test file runs them against the
// real thing.
import { describe, expect, it } from 'vitest'
import { publisherChecks, type PublisherUnderTest } from '../../../src/publishers/conformance.ts'

export function describePublisher(name: string, open: () => Promise<PublisherUnderTest>): void {
  describe(`${name}, as every publisher`, () => {
    for (const check of publisherChecks) {
      it(check.name, async () => {
        await expect(check.run(open)).resolves.toBeUndefined()
      })
    }
  })
}
