import { afterEach, expect, it, vi } from 'vitest'
import { resolveLogger } from '../../../src/runtime/logger.ts'

afterEach(() => vi.restoreAllMocks())

function spyOnConsole() {
  const spy = (level: 'debug' | 'info' | 'warn' | 'error') =>
    vi.spyOn(console, level).mockImplementation(() => {})
  return { debug: spy('debug'), info: spy('info'), warn: spy('warn'), error: spy('error') }
}

it('writes warnings and errors to the console by default, and nothing else', () => {
  const written = spyOnConsole()
  const logger = resolveLogger(undefined)
  for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level]({ n: 1 }, level)
  expect(written.warn.mock.calls).toEqual([['aftercommit: warn', { n: 1 }]])
  expect(written.error.mock.calls).toEqual([['aftercommit: error', { n: 1 }]])
  expect(written.debug).not.toHaveBeenCalled()
  expect(written.info).not.toHaveBeenCalled()
})

it('writes nothing with false', () => {
  const written = spyOnConsole()
  const logger = resolveLogger(false)
  for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level]({ n: 1 }, level)
  for (const spy of Object.values(written)) expect(spy).not.toHaveBeenCalled()
})

it('refuses what is no logger', () => {
  expect(() => resolveLogger(true as never)).toThrow(/logger must be false, or pino-shaped/)
})
