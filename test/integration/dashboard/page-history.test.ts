// The plots show the hours before the page was opened, of all instances or of one, by topic, under an address that can be shared.
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterEach, expect, it } from 'vitest'
import type { InstanceHistory } from '../../../src/store/outbox/control-store.ts'
import { useFixture } from '../../support/fixture.ts'
import { describeWithChromium, useDashboardPages } from '../../support/dashboard-page.ts'

describeWithChromium('the history on the page', () => {
  const fixture = useFixture()
  const pages = useDashboardPages(fixture)
  afterEach(() => fixture.sql`truncate outbox_instances`)

  /** One that was stopped two minutes ago and sent so many events in each of a hundred minutes. */
  async function addStopped(workerId: string, counts: Record<string, number>): Promise<void> {
    const topics = Object.keys(counts)
    const history: InstanceHistory = {
      topics,
      lastBeganMsAgo: 0,
      minutes: Array.from({ length: 100 }, () => ({
        sent: Object.values(counts).map((count, n) => [n, count * 60, 0, 0] as const),
        took: [3, 100],
        table: [12, 3_000, 0] as const,
      })),
    }
    await fixture.sql`
      insert into outbox_instances (id, worker_id, host, pid, version, seen_at, publishers, immediate, poller, settings, report,
        history, history_at)
      values (${randomUUID()}, ${workerId}, 'host', 1, '1', '-infinity', '[]', true, true, '{}', '{}',
        ${JSON.stringify(history)}::text::json, now() - interval '2 minutes')`
  }

  const plot = (page: Page, title: string) =>
    page.locator('.plot').filter({ has: page.getByRole('heading', { name: title }) })

  it('is there with the first request, of instances that have stopped, and filtered as the address says', async () => {
    await addStopped('old-1', { orders: 10, payments: 1 })
    await addStopped('old-2', { orders: 20 })
    const page = await pages.open('/overview?span=3h')
    const throughput = plot(page, 'Throughput')
    // The newest moment is the server's own; a hundred minutes ago there is what instances wrote.
    await throughput.locator('canvas').waitFor()
    const box = (await throughput.locator('.u-over').boundingBox())!
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2)
    await throughput.getByText('31/s').waitFor()
    await plot(page, 'Backlog').getByText('12', { exact: true }).waitFor()
    await page.getByLabel('Of which topic').selectOption('payments')
    await throughput.getByText('1.0/s').waitFor()
    await plot(page, 'Latency').getByText('Not known by topic').waitFor()
    await plot(page, 'Backlog, whole table').waitFor()
    await page.getByLabel('Of which instance').selectOption('old-2 (stopped)')
    await page.getByLabel('Of which topic').selectOption('all topics')
    await throughput.getByText('20/s').waitFor()
    const other = await pages.open(new URL(page.url()).hash.slice(1))
    // Without a filter by time the newest that is known counts.
    await plot(other, 'Throughput').getByText('20/s').waitFor()
    expect(await other.getByRole('button', { name: '3 hours' }).getAttribute('aria-pressed')).toBe(
      'true',
    )
  })

  it('says where nothing was kept', async () => {
    const page = await pages.open()
    const latency = plot(page, 'Latency')
    await latency.getByText('No figures for this time').waitFor()
    expect(await latency.locator('dd').allInnerTexts()).toEqual(['–', '–', '–'])
  })
})
