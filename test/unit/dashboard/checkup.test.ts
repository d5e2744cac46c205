// What the doctor found last: asked once a minute while pages ask, and never waited for.
import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { DoctorAnswer, Finding } from '../../../src/dashboard/api.ts'
import { Checkup } from '../../../src/dashboard/checkup.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'

const setClock = (ms: number) => vi.spyOn(performance, 'now').mockReturnValue(ms)
beforeEach(() => {
  setClock(0)
})
afterEach(() => {
  vi.restoreAllMocks()
})

const finding = (kind: string, severity: Finding['severity'] = 'warning'): Finding => ({
  severity,
  kind,
  what: 'a transaction has been open for 5 min',
  remedy: null,
  link: null,
})

function checking(found: readonly Finding[]) {
  const asked: number[] = []
  const logger = recordingLogger()
  const doctor = { found, error: null as Error | null }
  const checkup = new Checkup(async () => {
    asked.push(performance.now())
    if (doctor.error) throw doctor.error
    return { now: '', checked: [], skipped: [], findings: doctor.found } satisfies DoctorAnswer
  }, logger)
  /** As a page does, with time for the checks to end. */
  const ask = async () => {
    const findings = checkup.findings()
    await new Promise(setImmediate)
    return findings.map(({ kind, link }) => [kind, link?.to])
  }
  return { checkup, asked, doctor, logger, ask }
}

it('asks the doctor once a minute, however many pages ask, and never keeps one waiting', async () => {
  const { asked, ask } = checking([finding('transactions')])
  expect(await ask()).toEqual([])
  for (let ms = 0; ms < 150_000; ms += 5_000) {
    setClock(ms)
    expect(await ask()).toEqual([['transactions', 'doctor']])
  }
  expect(asked).toEqual([0, 60_000, 120_000])
})

it('leaves out what is good to know, and what the overview sees by itself', async () => {
  const { ask } = checking([
    finding('schema', 'error'),
    finding('instances', 'info'),
    finding('dead'),
    finding('locks', 'error'),
    finding('history'),
  ])
  await ask()
  expect(await ask()).toEqual([
    ['schema', 'doctor'],
    ['history', 'doctor'],
  ])
})

it('knows what a person has just been told, and looks again when it may be cured', async () => {
  const { checkup, doctor, asked, ask } = checking([finding('history')])
  await checkup.run()
  expect(await ask()).toEqual([['history', 'doctor']])
  doctor.found = []
  checkup.expire()
  await ask()
  expect(await ask()).toEqual([])
  expect(asked).toHaveLength(2)
})

it('keeps what it knew when the checks fail, and tries again after a minute', async () => {
  const { doctor, logger, ask, asked } = checking([finding('history')])
  await ask()
  doctor.error = new Error('away')
  setClock(60_000)
  await ask()
  expect(await ask()).toEqual([['history', 'doctor']])
  expect(asked).toEqual([0, 60_000])
  expect(logger.lines).toMatchObject([{ level: 'debug' }])
})
