import { describe, expect, it } from 'vitest'
import {
  parseSettings,
  refuseControl,
  settingsText,
} from '../../../src/drivers/transaction-text.ts'

describe('settings of a transaction', () => {
  it('are read as postgres.js takes them, in any order', () => {
    expect(parseSettings('')).toEqual({})
    expect(parseSettings('READ ONLY,  isolation level Repeatable Read')).toEqual({
      isolationLevel: 'repeatable read',
      accessMode: 'read only',
    })
    expect(parseSettings('not deferrable')).toEqual({ deferrable: false })
    for (const wrong of ['isolation level chaos', 'read only; drop table orders', 'serializable']) {
      expect(() => parseSettings(wrong)).toThrow(/begin\(\) cannot read/)
    }
  })

  it('come out as what follows BEGIN', () => {
    expect(settingsText()).toBe('')
    expect(settingsText({ isolationLevel: 'serializable' })).toBe('isolation level serializable')
    const all = {
      isolationLevel: 'repeatable read',
      accessMode: 'read only',
      deferrable: true,
    } as const
    expect(settingsText(all)).toBe('isolation level repeatable read read only deferrable')
    expect(settingsText({ deferrable: false })).toBe('not deferrable')
  })
})

describe('a statement inside a unit of work', () => {
  it.each([
    ['commit', 'COMMIT'],
    ['  COMMIT;', 'COMMIT'],
    ['begin isolation level serializable', 'BEGIN'],
    ['start\n transaction', 'START TRANSACTION'],
    ['rollback to savepoint a', 'ROLLBACK'],
    ['end', 'END'],
    ['abort', 'ABORT'],
    ['savepoint a', 'SAVEPOINT'],
    ['release a', 'RELEASE'],
    ["prepare transaction 'x'", 'PREPARE TRANSACTION'],
    ['-- save it\ncommit', 'COMMIT'],
    ['/* now; then */ rollback', 'ROLLBACK'],
    ["insert into orders values ('it''s; fine'); commit", 'COMMIT'],
    ["select E'\\'; '; rollback", 'ROLLBACK'],
    ['select $$;$$; commit', 'COMMIT'],
  ])('must not be %o', (text, keyword) => {
    expect(() => refuseControl(text)).toThrow(
      expect.objectContaining({
        code: 'TRANSACTION_CONTROL',
        message: expect.stringMatching(
          `^${keyword} is refused .* tx.savepoint\\(work\\) or .*$`,
        ) as string,
      }),
    )
  })

  it.each([
    'select 1',
    '',
    'select case when true then 1 end',
    "insert into log values ('; commit')",
    'select "; commit" from log',
    'do $body$ begin perform 1; end $body$',
    'select 1 -- ; commit',
    'select /* ; rollback */ 1',
    'select 1; select 2',
    'prepare plan as select 1',
    'create function f() returns int begin atomic select 1; end',
    'update releases set release = 1',
    "select E'\\'; commit; '",
    'beginning',
  ])('may be %o', (text) => {
    expect(() => refuseControl(text)).not.toThrow()
  })
})
