import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Trouble } from '../../../src/runtime/trouble.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'

const TEXTS = { level: 'warn', begins: 'begins', goesOn: 'goes on', over: 'over' } as const
let now = 0
beforeEach(() => {
  now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.restoreAllMocks()
})

it('is told when it begins, once a minute, and when it is over', () => {
  const logger = recordingLogger()
  const trouble = new Trouble(logger, TEXTS)
  trouble.end({})
  for (; now < 150_000; now += 500) trouble.happened({ topic: 'a' })
  trouble.end({ topic: 'a' })
  trouble.end({ topic: 'a' })
  expect(logger.lines).toEqual([
    { level: 'warn', fields: { topic: 'a' }, message: 'begins' },
    { level: 'warn', fields: { topic: 'a', forMs: 60_000 }, message: 'goes on' },
    { level: 'warn', fields: { topic: 'a', forMs: 120_000 }, message: 'goes on' },
    { level: 'info', fields: { topic: 'a', afterMs: 150_000 }, message: 'over' },
  ])
})

it('begins anew after it was over', () => {
  const logger = recordingLogger()
  const trouble = new Trouble(logger, TEXTS)
  trouble.happened({})
  trouble.end({})
  trouble.happened({})
  expect(logger.lines.map(({ message }) => message)).toEqual(['begins', 'over', 'begins'])
})
