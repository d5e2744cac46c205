// A telemetry is a guest on the path: one that throws, forgets to send or sends twice changes nothing, and without an SDK
// nothing is recorded.
import { expect, it } from 'vitest'
import type { Telemetry } from '../../../src/index.ts'
import { otel } from '../../../src/telemetry/otel/otel.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { useFixture } from '../../support/fixture.ts'
import { addEffect, useInbox } from '../../support/inbox.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const { inbox: createInbox, effects } = useInbox(fixture)

const fail = () => {
  throw new Error('the telemetry is broken')
}

const BROKEN: Record<string, Telemetry> = {
  'throws at once': { watch: fail, create: fail, send: fail, process: fail },
  'throws at the end': {
    send: (_, publish) => {
      publish()
      return fail
    },
    process: (_, handle) => {
      handle()
      return fail
    },
  },
  'rejects, and never runs what it should': {
    create: (async () => fail()) as never,
    send: (async () => fail()) as never,
    process: (async () => fail()) as never,
  },
  'runs everything twice': {
    send: (_, publish) => {
      publish()
      publish()
      return undefined
    },
    process: (_, handle) => {
      handle()
      handle()
      return undefined
    },
  },
  'adds headers that cannot be stored, and replaces others': {
    create: () => ({ Own: 'replaced', broken: '\u0000', number: 1 as never, fine: 'added' }),
  },
}

it.each(Object.keys(BROKEN))('delivers each event once with a telemetry that %s', async (name) => {
  const telemetry = BROKEN[name]!
  const logger = recordingLogger()
  const seen: string[] = []
  const inbox = createInbox({ telemetry, logger })
  const handled: unknown[] = []
  const handlers = {
    OrderCompleted: async (event: { id: string; headers: object }) => {
      handled.push(event.headers)
      await inbox.once({ id: event.id }, async (tx) => {
        seen.push(event.id)
        await addEffect(tx, event.id)
      })
    },
  }
  const outbox = fixture.handling(handlers, { telemetry, logger })
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  const id = await outbox.withOutbox(async (_, emit) =>
    emit(newEvent({ headers: { own: 'kept' } })),
  )
  await published
  expect(seen).toEqual([id])
  expect(await effects()).toEqual([id])
  const added = name.startsWith('adds') ? { fine: 'added' } : {}
  expect(handled).toEqual([{ own: 'kept', ...added }])
  const complaints = logger.lines.filter(({ message }) =>
    message.startsWith('the telemetry failed'),
  )
  const isHeard = name.includes('throws') || name.startsWith('rejects')
  // The outbox and the inbox each say it once, however often it happens.
  expect(complaints).toHaveLength(isHeard ? 2 : 0)
})

it('throws to the caller what the work threw, with a telemetry as without', async () => {
  const inbox = createInbox({ telemetry: BROKEN['throws at the end']! })
  const error = new Error('no')
  await expect(inbox.once({ id: 'e1' }, () => Promise.reject(error))).rejects.toBe(error)
  expect(await effects()).toEqual([])
})

it('saves no header and loses nothing if no SDK is registered', async () => {
  const handled: object[] = []
  const outbox = fixture.handling(
    { OrderCompleted: ({ headers }) => void handled.push(headers) },
    { telemetry: otel() },
  )
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await published
  expect(handled).toEqual([{}])
})

it('refuses what is no telemetry, and one otel() for two outboxes', () => {
  expect(() => fixture.handling({}, { telemetry: {} })).toThrow(/otel\(\)/)
  const telemetry = otel()
  fixture.handling({}, { telemetry })
  expect(() => fixture.handling({}, { telemetry })).toThrow(/with different attributes/)
  expect(() => otel({ trace: true } as never)).toThrow(/did you mean 'traces'/)
})

it('shows a telemetry no payloads, and lets it change no headers', async () => {
  const seen: unknown[] = []
  const telemetry: Telemetry = {
    create: (event) => {
      ;(event.headers as Record<string, string>)['added'] = 'later'
      return null
    },
    send: (batch, publish) => {
      seen.push(...batch.events)
      publish()
      return undefined
    },
  }
  const outbox = fixture.handling({ OrderCompleted: () => {} }, { telemetry })
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox((_, emit) => emit(newEvent({ payload: 'secret' })))
  await published
  expect(seen).toHaveLength(1)
  expect(JSON.stringify(seen)).not.toContain('secret')
  expect(JSON.stringify(seen)).not.toContain('added')
})
