import { describe, expect, it } from 'vitest'
import { resolveInboxOptions } from '../../../src/inbox/options.ts'

const minimal = {
  db: { execute: async () => [], transaction: async () => {} },
  consumer: 'billing',
}
const resolve = (overrides: object) => resolveInboxOptions({ ...minimal, ...overrides })

describe('resolveInboxOptions()', () => {
  it('needs a database and a consumer, and freezes the result', () => {
    const resolved = resolve({})
    expect(resolved).toMatchObject({
      consumer: 'billing',
      inOrder: false,
      retentionMs: 7 * 86_400_000,
      table: { schema: 'public', name: 'inbox' },
      migrate: false,
    })
    expect(resolved.cleanup?.pauseMs()).toBe(3_600_000)
    expect(Object.isFrozen(resolved)).toBe(true)
  })

  it('treats undefined as not given', () => {
    expect(resolve({ order: undefined, retention: undefined })).toMatchObject({ inOrder: false })
  })

  it('knows that order may be kept, and cleanup left to others', () => {
    expect(resolve({ order: 'aggregate', cleanup: false })).toMatchObject({
      inOrder: true,
      cleanup: null,
    })
  })

  it.each([
    [{ consumer: undefined }, /consumer must be a non-empty string, got undefined/],
    [{ consumer: '' }, /consumer must be a non-empty string, got ''/],
    [{ consumer: 'a\u0000' }, /consumer must be/],
    [{ consumer: 'x'.repeat(256) }, /consumer takes 256 bytes, more than the 255 allowed/],
    [{ db: {} }, /db must be a Drizzle Postgres database/],
    [{ ordering: 'aggregate' }, /createInbox\(\) has no option 'ordering'; did you mean 'order'\?/],
    [{ consumers: 'a' }, /did you mean 'consumer'\?/],
    [{ order: 'key' }, /order must be one of 'none', 'aggregate', got 'key'/],
    [{ retention: 0 }, /retention must be at least a second, got 0/],
    [{ retention: '99999d' }, /at most ten years.*cleanup: false/],
    [{ cleanup: true }, /cleanup must be a duration .* or false, got true/],
    [{ table: 'public.inbox' }, /table must be a name without a dot/],
    [{ table: 'x'.repeat(50) }, /table must be a name of 1 to 49 bytes/],
    [{ migrate: 'yes' }, /migrate must be true or false, got 'yes'/],
    [{ events: {} }, /events declares nothing/],
    [{ logger: {} }, /logger must be false, or pino-shaped/],
  ])('refuses %j with the reason', (overrides, reason) => {
    expect(() => resolve(overrides)).toThrow(reason)
  })
})
