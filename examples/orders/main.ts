// The demo, as a story: an order service runs, its broker goes away and comes back, and in the end an
// independent count says whether anything was lost. `npm run demo -- --handlers` does without Kafka; with `--keep` the
// dashboard stays open after the end.
import { setTimeout as delay } from 'node:timers/promises'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox, DEFAULTS } from 'aftercommit'
import { startPostgres } from '../../test/support/servers/postgres-server.ts'
import { openBroker, topic } from './brokers.ts'
import { type DemoDashboard, openDashboard } from './dashboard.ts'
import { judge, readCommitted } from './oracle.ts'
import { createOrdersTable, openOrderService } from './order-service.ts'
import { isGood, renderReport } from './report.ts'
import { openScreen, paint } from './screen.ts'
import { runToExit, type Shutdown } from './shutdown.ts'
import { tallyEvents } from './tally.ts'
import { startTimeline } from './timeline.ts'
import { renderState, showClock, showCount } from './view.ts'

const AWAY_AT_MS = 6_000
const BACK_AT_MS = 12_000
const END_AT_MS = 20_000
const DRAIN_LIMIT_MS = 60_000

const SETTINGS = { threshold: '3s', publishTimeout: '2s', pollInterval: '1s' } as const
const NAMES = ['threshold', 'publishTimeout', 'pollInterval'] as const

const FLAGS = ['--handlers', '--keep']
const unknown = process.argv.slice(2).find((argument) => !FLAGS.includes(argument))
if (unknown !== undefined) {
  console.error(
    `the demo does not know '${unknown}'; it takes --handlers, to do without Kafka, and --keep, to keep the dashboard open`,
  )
  process.exit(2)
}
const keeps = process.argv.includes('--keep')

const screen = openScreen()

async function runDemo({ signal, closeLater, untilAsked }: Shutdown): Promise<number> {
  const server = await screen.step('starting Postgres', () => startPostgres())
  closeLater(() => server.stop())
  const broker = await openBroker(screen, process.argv.includes('--handlers'))
  closeLater(() => broker.stop())

  const client = postgres(server.url, { onnotice: () => {} })
  closeLater(() => client.end({ timeout: 1 }))
  const db = drizzle(client)
  await createOrdersTable(db)
  const { publisher } = broker
  const outbox = createOutbox({
    db,
    publisher,
    topic,
    migrate: true,
    stopTimeout: '3s',
    ...SETTINGS,
  })
  const tally = tallyEvents(outbox.events)
  const service = openOrderService(outbox)
  await outbox.start()
  closeLater(() => outbox.stop())
  closeLater(() => service.settle())
  const page = await serveDashboard(outbox, closeLater)

  if (page) screen.say(`  dashboard:    ${paint('bold', page.url)}`)
  screen.say(`  events go to: ${broker.title}`)
  screen.say(`  the outage:   ${broker.outage}`)
  const chosen = NAMES.map((name) => `${name} ${SETTINGS[name]}`).join(', ')
  const usual = NAMES.map((name) => DEFAULTS[name]).join(', ')
  screen.say(`  settings:     ${chosen},`)
  screen.say(`                less than the defaults (${usual}) to make the rescue visible\n`)

  const pending = watchPending(server.url, closeLater)
  const time = startTimeline(END_AT_MS, signal)
  const { units } = service
  screen.beginView(() => renderState({ time, pending: pending.count, units, tally }))
  const tell = (text: string) => screen.say(`${showClock(time.elapsedMs)}  ${paint('bold', text)}`)

  outbox.events.on('error', ({ step, error }) => tell(`background step ${step}: ${error.message}`))
  outbox.events.on('circuit:open', ({ error }) => {
    // It opens again after every probe that fails; the live view counts those.
    if (tally.circuit?.probes === 0) tell(`circuit opened: ${error?.message}`)
  })
  outbox.events.on('circuit:closed', () => tell('circuit closed, the backlog drains'))

  async function loseBroker(): Promise<void> {
    await time.until(AWAY_AT_MS)
    time.phase = 'broker away'
    tell(`the broker is taken away (${broker.outage})`)
    await broker.takeAway()
    await time.until(BACK_AT_MS - broker.startsWithinMs)
    time.phase = 'broker starting'
    tell('the broker is being brought back')
    await broker.bringBack()
    time.phase = 'broker back'
    tell('the broker is back')
    const backAt = time.elapsedMs
    outbox.events.on('event:published', function first({ path }) {
      if (path !== 'fallback') return
      outbox.events.off('event:published', first)
      const seconds = ((time.elapsedMs - backAt) / 1_000).toFixed(1)
      tell(`first rescue, ${seconds} s after the broker's return`)
    })
  }
  await Promise.all([service.takeOrders(END_AT_MS, signal), loseBroker()])

  time.phase = 'draining'
  tell('no more orders; waiting until nothing is pending')
  const limit = time.elapsedMs + DRAIN_LIMIT_MS
  while ((await pending.look()) > 0 && time.elapsedMs < limit) await delay(50, null, { signal })
  if (pending.count === 0) tell('nothing is pending')
  else tell(`${showCount(pending.count)} events still pending after ${DRAIN_LIMIT_MS / 1_000} s`)
  screen.freeze()

  screen.say('')
  const verdict = await screen.step('counting what arrived, from the beginning', async () =>
    judge(await readCommitted(server.url), await broker.readDelivered()),
  )
  const { witness } = broker
  screen.say(renderReport({ verdict, witness, rolledBack: units.rolledBack, tally }))
  if (page && keeps) {
    screen.say(`  the dashboard stays open at ${paint('bold', page.url)}; Ctrl-C ends it`)
    await untilAsked()
  }
  return isGood(verdict) ? 0 : 1
}

/** The demo does not need it, so it goes on without. */
async function serveDashboard(
  outbox: Parameters<typeof openDashboard>[0],
  closeLater: Shutdown['closeLater'],
): Promise<DemoDashboard | null> {
  try {
    const page = await screen.step('building the dashboard', () => openDashboard(outbox))
    closeLater(() => page.close())
    return page
  } catch (error) {
    screen.say(`  no dashboard: ${error instanceof Error ? error.message : String(error)}`)
    return null
  }
}

/** How many events the table holds that have not gone out, by a client of its own. */
function watchPending(databaseUrl: string, closeLater: Shutdown['closeLater']) {
  const client = postgres(databaseUrl, { max: 1 })
  const pending = {
    count: 0,
    async look() {
      const [row] = await client<{ count: number }[]>`
        select count(*)::int as count from outbox where status = 'pending'`
      pending.count = row!.count
      return pending.count
    },
  }
  const timer = setInterval(() => void pending.look().catch(() => {}), 200)
  closeLater(async () => {
    clearInterval(timer)
    await client.end({ timeout: 1 })
  })
  return pending
}

await runToExit(screen, runDemo)
