// Everything that a person can do on the page, done there and seen in the table: each action asks first, says how many, and
// tells what became of it.
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { seedInstance } from '../../support/seeded-instances.ts'
import { describeWithChromium, useDashboardPages } from '../../support/dashboard-page.ts'

describeWithChromium('on the page a person', () => {
  const fixture = useFixture()
  const pages = useDashboardPages(fixture)

  const statuses = async () =>
    Object.fromEntries((await fixture.rows()).map(({ id, status }) => [id, status]))
  const dialogOf = (page: Page) => page.getByRole('dialog')
  const outcomeOf = (page: Page, text: string) =>
    page.getByRole('status').filter({ hasText: text }).waitFor()

  it('retries a dead letter, which gets all its attempts again', async () => {
    const [id] = await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'no such customer' },
    ])
    const page = await pages.open(`/events/${id}`)
    await page.getByRole('button', { name: 'Retry now' }).click()
    await dialogOf(page).getByText('1 dead letter', { exact: true }).waitFor()
    await dialogOf(page).getByRole('button', { name: 'Retry 1' }).click()
    await outcomeOf(page, '1 event goes out again.')
    const [row] = await fixture.rows()
    expect(row).toMatchObject({ status: 'pending', attempts: 0, available: true })
    // The view shows it without being asked.
    await page.locator('.view-head .badge').getByText('Pending').waitFor()
  })

  it('discards an event only after typing the word', async () => {
    const [id] = await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'no such customer' },
    ])
    const page = await pages.open(`/events/${id}`)
    await page.getByRole('button', { name: 'Discard' }).click()
    const button = dialogOf(page).getByRole('button', { name: 'Discard 1' })
    await button.waitFor()
    expect(await button.isDisabled()).toBe(true)
    await page.keyboard.type('discar')
    await page.keyboard.press('Enter')
    expect(await fixture.rows()).toHaveLength(1)
    await page.keyboard.type('d')
    await page.keyboard.press('Enter')
    await outcomeOf(page, '1 event was discarded.')
    expect(await fixture.rows()).toEqual([])
    await page.getByText('No event has the id').waitFor()
  })

  it('changes nothing by Cancel or Escape, and has the focus back where it was', async () => {
    const [id] = await seed(fixture.sql, [{ status: 'dead_letter', attempts: 10, error: 'x' }])
    const page = await pages.open(`/events/${id}`)
    const discard = page.getByRole('button', { name: 'Discard' })
    await discard.click()
    await dialogOf(page).getByText('1 dead letter').waitFor()
    await page.keyboard.press('Escape')
    await dialogOf(page).waitFor({ state: 'detached' })
    expect(await page.locator('button:focus').innerText()).toBe('Discard…')
    await discard.click()
    await dialogOf(page).getByRole('button', { name: 'Cancel' }).click()
    await dialogOf(page).waitFor({ state: 'detached' })
    expect(await statuses()).toEqual({ [id!]: 'dead_letter' })
  })

  it('leads from a group to its own events, and to no others', async () => {
    await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'order 17 has no address' },
      { status: 'dead_letter', attempts: 10, error: 'order 18 has no address' },
      { status: 'dead_letter', attempts: 10, error: 'too large' },
      { status: 'failed', attempts: 1, error: 'order 19 has no address', dueInSeconds: 600 },
    ])
    const page = await pages.open('/failures')
    const group = page.getByRole('listitem').filter({ hasText: '2 events' })
    await group.getByRole('link', { name: 'All of them' }).click()
    await page.locator('.list-line').getByText('2 events', { exact: true }).waitFor()
    expect(await page.getByLabel('Error', { exact: true }).inputValue()).toBe(
      'order <number> has no address',
    )
    await page.getByRole('button', { name: 'Retry matching' }).click()
    await dialogOf(page).getByText('2 dead letters').waitFor()
  })

  it('retries a group, and no other one', async () => {
    const [one, two, other] = await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'order 17 has no address' },
      { status: 'dead_letter', attempts: 10, error: 'order 18 has no address' },
      { status: 'dead_letter', attempts: 10, error: 'too large' },
    ])
    const page = await pages.open('/failures')
    const group = page.getByRole('listitem').filter({ hasText: 'has no address' })
    await group.getByText('2 events').waitFor()
    await group.getByRole('button', { name: 'Retry' }).click()
    await dialogOf(page).getByText('2 dead letters').waitFor()
    await dialogOf(page).getByRole('button', { name: 'Retry 2' }).click()
    await outcomeOf(page, '2 events go out again.')
    await group.waitFor({ state: 'detached' })
    expect(await statuses()).toEqual({
      [one!]: 'pending',
      [two!]: 'pending',
      [other!]: 'dead_letter',
    })
  })

  it('discards a group', async () => {
    const [, other] = await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'too large' },
      { status: 'dead_letter', attempts: 10, error: 'refused' },
    ])
    const page = await pages.open('/failures')
    await page.getByRole('button', { name: 'Discard the group: too large' }).click()
    await dialogOf(page).getByRole('textbox').fill('discard')
    await dialogOf(page).getByRole('button', { name: 'Discard 1' }).click()
    await outcomeOf(page, '1 event was discarded.')
    expect(await statuses()).toEqual({ [other!]: 'dead_letter' })
  })

  it('retries all failures that the filter matches, and leaves the rest', async () => {
    const [failing, dead, elsewhere, published] = await seed(fixture.sql, [
      { status: 'failed', topic: 'orders', attempts: 2, error: 'x', dueInSeconds: 3600 },
      { status: 'dead_letter', topic: 'orders', attempts: 10, error: 'x' },
      { status: 'dead_letter', topic: 'payments', attempts: 10, error: 'x' },
      { status: 'published', topic: 'orders' },
    ])
    const page = await pages.open('/events?topic=orders')
    await page.getByRole('button', { name: 'Retry matching' }).click()
    await dialogOf(page).getByText('2 dead letters and failing events').waitFor()
    await dialogOf(page).getByRole('button', { name: 'Retry 2' }).click()
    await outcomeOf(page, '2 events go out again.')
    const rows = await fixture.rows()
    expect(rows.find(({ id }) => id === failing)).toMatchObject({ attempts: 2, available: true })
    expect(await statuses()).toMatchObject({
      [dead!]: 'pending',
      [elsewhere!]: 'dead_letter',
      [published!]: 'published',
    })
  })

  it('acts although the time to count was over before an event was found', async () => {
    const [id] = await seed(fixture.sql, [{ status: 'dead_letter', attempts: 10, error: 'x' }])
    const uncounted = { count: 0, exact: false, asOf: new Date().toISOString() }
    const before = ({ url }: Request) =>
      url.endsWith('/api/preview') ? Response.json(uncounted) : null
    const page = await pages.open('/events?status=dead_letter', { before })
    await page.getByRole('button', { name: 'Retry matching' }).click()
    await dialogOf(page).getByText('dead letters, not counted to the end').waitFor()
    await dialogOf(page).getByRole('button', { name: 'Retry', exact: true }).click()
    await outcomeOf(page, '1 event goes out again.')
    expect(await statuses()).toEqual({ [id!]: 'pending' })
  })

  it('is offered no retry of what matches where no failure does', async () => {
    await seed(fixture.sql, [{}, { status: 'published' }])
    const page = await pages.open('/events')
    await page.locator('.list-line').getByText('2 events', { exact: true }).waitFor()
    const offered = (name: string) =>
      page.getByRole('button', { name: `${name} matching` }).isEnabled()
    expect([await offered('Retry'), await offered('Discard')]).toEqual([false, false])
    await seed(fixture.sql, [{ status: 'dead_letter' }])
    await page.getByRole('button', { name: /^(Refresh|Show what has changed)$/ }).click()
    await page.locator('.list-line').getByText('3 events', { exact: true }).waitFor()
    expect([await offered('Retry'), await offered('Discard')]).toEqual([true, true])
  })

  it('retries the events that are ticked, and no others', async () => {
    const [one, two, three, other] = await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'x', aggregateId: '1' },
      { status: 'failed', attempts: 2, error: 'x', dueInSeconds: 3600, aggregateId: '2' },
      { status: 'dead_letter', attempts: 10, error: 'x', aggregateId: '3' },
      { status: 'dead_letter', attempts: 10, error: 'x', aggregateId: '4' },
      { status: 'published', aggregateId: '5' },
    ])
    const page = await pages.open('/events')
    const box = (aggregate: string) =>
      page.getByRole('checkbox', { name: `OrderPlaced of order/${aggregate}` })
    await box('1').focus()
    await page.keyboard.press('Space')
    await page.getByText('1 ticked').waitFor()
    await box('3').click({ modifiers: ['Shift'] })
    await page.getByText('3 ticked').waitFor()
    await box('3').click()
    expect(await page.getByRole('checkbox').count()).toBe(5)
    await page.getByRole('button', { name: 'Retry 2' }).click()
    await dialogOf(page)
      .getByText('2 dead letters and failing events: those that you ticked')
      .waitFor()
    await dialogOf(page).getByRole('button', { name: 'Retry 2' }).click()
    await outcomeOf(page, '2 events go out again.')
    await page.getByRole('group', { name: 'Ticked events' }).waitFor({ state: 'detached' })
    expect(await statuses()).toMatchObject({
      [one!]: 'pending',
      [three!]: 'dead_letter',
      [other!]: 'dead_letter',
    })
    const rows = await fixture.rows()
    expect(rows.find(({ id }) => id === two)).toMatchObject({ available: true })
  })

  it('discards all that are ticked at once, and sees none ticked under another filter', async () => {
    await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'x' },
      { status: 'dead_letter', attempts: 10, error: 'x', type: 'OrderPaid' },
      {},
    ])
    const page = await pages.open('/events')
    const all = page.getByRole('checkbox', { name: 'All failures on this list' })
    await all.click()
    await page.getByText('2 ticked').waitFor()
    await page.getByRole('button', { name: 'Dead letter', exact: true }).click()
    await page.locator('.list-line').getByText('2 events', { exact: true }).waitFor()
    expect(await all.isChecked()).toBe(false)
    await all.click()
    await page.getByRole('button', { name: 'Discard 2' }).click()
    await dialogOf(page).getByRole('textbox').fill('discard')
    await dialogOf(page).getByRole('button', { name: 'Discard 2' }).click()
    await outcomeOf(page, '2 events were discarded.')
    expect(Object.values(await statuses())).toEqual(['pending'])
  })

  it('changes no more ticked events at once than the server takes, and reads why', async () => {
    const now = new Date().toISOString()
    const failure = {
      status: 'dead_letter',
      type: 'OrderPlaced',
      aggregateType: 'order',
      topic: 'orders',
    }
    const times = { createdAt: now, availableAt: now, publishedAt: null, deliverAt: null }
    const events = Array.from({ length: 1_001 }, (_, n) => ({
      ...failure,
      ...times,
      id: `019a8c1e-7b2f-7c41-9a55-${String(n).padStart(12, '0')}`,
      aggregateId: String(n),
    }))
    const before = ({ url }: Request) =>
      url.includes('/api/events?')
        ? Response.json({ now, events, next: null, lookedUntil: null })
        : null
    const page = await pages.open('/events', { before })
    await page.getByRole('checkbox', { name: 'All failures on this list' }).click()
    const bar = page.getByRole('group', { name: 'Ticked events' })
    await bar.getByText('1,001 ticked, and at most 1,000 can be changed at once').waitFor()
    expect(await bar.getByRole('button').allInnerTexts()).toEqual(['Untick all'])
    await page.getByRole('checkbox', { name: 'OrderPlaced of order/7', exact: true }).click()
    await bar.getByRole('button', { name: 'Retry 1,000' }).waitFor()
  })

  it('discards what the filter matches by status', async () => {
    const [failing, , other] = await seed(fixture.sql, [
      { status: 'failed', attempts: 2, error: 'x', dueInSeconds: 3600 },
      { status: 'dead_letter', attempts: 10, error: 'x' },
      { status: 'dead_letter', attempts: 10, error: 'x', type: 'OrderPaid' },
    ])
    const page = await pages.open('/events?status=dead_letter&type=OrderPlaced')
    await page.getByRole('button', { name: 'Discard matching' }).click()
    await dialogOf(page).getByText('1 dead letter: OrderPlaced', { exact: true }).waitFor()
    await dialogOf(page).getByRole('textbox').fill('discard')
    await dialogOf(page).getByRole('button', { name: 'Discard 1' }).click()
    await outcomeOf(page, '1 event was discarded.')
    expect(await statuses()).toEqual({ [failing!]: 'failed', [other!]: 'dead_letter' })
    await page.getByText('No event found').waitFor()
  })

  it('sees where events wait, and for how long', async () => {
    await seed(fixture.sql, [
      { status: 'pending', topic: 'payments', secondsAgo: 180 },
      { status: 'pending', topic: 'payments' },
      { status: 'published', topic: 'orders' },
    ])
    const page = await pages.open('/topics')
    const row = page.getByRole('row').filter({ hasText: 'payments' })
    await row.getByText('2, the oldest for 3 min').waitFor()
    expect(await page.getByRole('row').filter({ hasText: 'orders' }).count()).toBe(0)
  })

  it('pauses a topic with a reason, sees it paused, and resumes it', async () => {
    await seed(fixture.sql, [{ topic: 'orders' }, { topic: 'orders' }, { topic: 'payments' }])
    const page = await pages.open('/topics')
    await page.getByLabel('Topic', { exact: true }).fill('orders')
    await page.getByRole('button', { name: 'Pause…', exact: true }).click()
    await dialogOf(page).getByText('2 unsent events').waitFor()
    await dialogOf(page).getByLabel('Reason').fill('broker moves')
    await dialogOf(page).getByRole('button', { name: 'Pause' }).click()
    await outcomeOf(page, 'orders is paused.')
    await page.getByRole('cell', { name: 'broker moves' }).waitFor()
    await page.getByRole('cell', { name: 'ada' }).waitFor()
    expect(await fixture.handling({}).pauses()).toMatchObject([
      { topic: 'orders', by: 'ada', reason: 'broker moves' },
    ])
    await page.getByRole('button', { name: 'Resume orders' }).click()
    await dialogOf(page).getByRole('button', { name: 'Resume' }).click()
    await outcomeOf(page, 'orders goes on.')
    await page.getByText('Nothing is paused').waitFor()
    expect(await fixture.handling({}).pauses()).toEqual([])
  })

  it('is warned of a topic that no event is for before it is paused', async () => {
    await seed(fixture.sql, [{ topic: 'orders', status: 'published' }])
    const page = await pages.open('/topics')
    const warning = dialogOf(page).getByText('Check the spelling.')
    const ask = async (topic: string) => {
      await page.getByLabel('Topic', { exact: true }).fill(topic)
      await page.getByRole('button', { name: 'Pause…', exact: true }).click()
      await dialogOf(page).getByText('0 unsent events').waitFor()
    }
    await ask('orders')
    expect(await warning.count()).toBe(0)
    await page.keyboard.press('Escape')
    await ask('ordres')
    await warning.waitFor()
    await dialogOf(page).getByRole('button', { name: 'Pause' }).click()
    await outcomeOf(page, 'ordres is paused.')
    await fixture.handling({}).resume('ordres')
  })

  it('moves the events of a mistyped topic to the right one', async () => {
    const [one, two, other] = await seed(fixture.sql, [
      { topic: 'ordres' },
      { topic: 'ordres', status: 'failed', attempts: 1, error: 'x', dueInSeconds: 600 },
      { topic: 'ordres', status: 'dead_letter', attempts: 10, error: 'x' },
      { topic: 'payments' },
    ])
    const page = await pages.open('/topics')
    await page.getByRole('button', { name: 'Move the events of ordres' }).click()
    await dialogOf(page).getByText('2 unsent events').waitFor()
    const button = dialogOf(page).getByRole('button', { name: 'Move 2' })
    expect(await button.isDisabled()).toBe(true)
    await dialogOf(page).getByLabel('The right topic').fill('orders')
    await button.click()
    await outcomeOf(page, '2 events go to orders.')
    const moved = await fixture.sql`select id from outbox where topic = 'orders' order by seq`
    expect([...moved]).toEqual([{ id: one }, { id: two }])
    // Dead letters stay: the list of the old topic has one, and nothing to move.
    await page.goto(`${page.url().split('#')[0]}#/events?topic=ordres`)
    await page.getByText('1 event', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Move to another topic' }).click()
    await dialogOf(page).getByText('0 unsent events').waitFor()
    await dialogOf(page).getByText('No event matches any more').waitFor()
    expect(await statuses()).toMatchObject({ [other!]: 'dead_letter' })
  })

  it('moves events from the finding that their topic is out of reach', async () => {
    const circuits = [{ publisher: 'kafka', topic: 'ordres', forMs: 9_000, error: 'no such topic' }]
    await seedInstance(fixture.sql, { report: { circuits } })
    await seed(fixture.sql, [{ topic: 'ordres' }])
    const page = await pages.open('')
    const verdict = page.getByRole('region', { name: 'Verdict' })
    await verdict.getByText('If the name is mistyped, correct it in the application').waitFor()
    await verdict.getByRole('button', { name: 'Move the events of ordres' }).click()
    await dialogOf(page).getByLabel('The right topic').fill('orders')
    await dialogOf(page).getByRole('button', { name: 'Move 1' }).click()
    await outcomeOf(page, '1 event goes to orders.')
    const [moved] = await fixture.sql`select topic from outbox`
    expect(moved).toEqual({ topic: 'orders' })
    await fixture.sql`truncate outbox_instances`
  })

  it('chooses among the known topics before a move, and is warned of another one', async () => {
    await seed(fixture.sql, [{ topic: 'ordres' }, { topic: 'orders', status: 'published' }])
    const page = await pages.open('/events?topic=ordres')
    await page.getByRole('button', { name: 'Move to another topic' }).click()
    await dialogOf(page).getByText('Correct the application first').waitFor()
    await dialogOf(page).getByRole('button', { name: 'Move 1' }).waitFor()
    const field = dialogOf(page).getByLabel('The right topic')
    const offered = await dialogOf(page).locator('datalist option').all()
    expect(await Promise.all(offered.map((one) => one.getAttribute('value')))).toEqual(['orders'])
    const warning = dialogOf(page).getByText('Check the spelling.')
    await field.fill('order')
    await warning.waitFor()
    await field.fill('orders')
    await warning.waitFor({ state: 'detached' })
  })

  it('pauses everything, and sees so in the verdict', async () => {
    const page = await pages.open('/topics')
    await page.getByRole('button', { name: 'Pause everything' }).click()
    await dialogOf(page).getByRole('button', { name: 'Pause' }).click()
    await outcomeOf(page, 'Everything is paused.')
    await page.getByRole('link', { name: 'Paused', exact: true }).click()
    await page.getByText('Nothing is sent; 0 events wait.').waitFor()
    expect(await page.title()).toBe('Paused · public.outbox')
    expect(await fixture.handling({}).resume(null)).toBe(true)
  })

  it('has the doctor look, and again on a click', async () => {
    await seed(fixture.sql, [{ status: 'dead_letter', attempts: 10, error: 'x' }])
    const page = await pages.open('/doctor')
    await page.getByText(/^Checked .* schema/).waitFor()
    const finding = page.locator('.findings li').filter({ hasText: 'one dead letter' })
    // The page has buttons for what a command would do.
    expect(await finding.innerText()).not.toContain('aftercommit')
    await finding.getByRole('link', { name: 'Show the failures' }).waitFor()
    await fixture.sql`delete from outbox`
    await page.getByRole('button', { name: 'Check again' }).click()
    await finding.waitFor({ state: 'detached' })
  })

  it('sees on the overview what the doctor finds, and purges it away', async () => {
    const old = Array.from({ length: 3 }, () => ({
      status: 'published' as const,
      secondsAgo: 40 * 86_400,
    }))
    await seed(fixture.sql, old)
    const outbox = fixture.handling({}, { cleanup: false })
    await outbox.start()
    const page = await pages.open('', { outbox })
    const verdict = page.getByRole('region', { name: 'Verdict' })
    await verdict.getByText(/^Events go out, with \d+ warnings?\.$/).waitFor()
    await verdict.getByText('3 published events are past the retention of 7 d').waitFor()
    expect(await verdict.innerText()).not.toContain('aftercommit')
    await page.getByRole('link', { name: /^Doctor \d+ found$/ }).waitFor()
    await verdict.getByRole('link', { name: 'Ask the doctor' }).click()
    const finding = page.locator('.findings').getByText('past the retention')
    await finding.waitFor()
    await page.getByRole('button', { name: 'Count and purge' }).click()
    await dialogOf(page).getByRole('textbox').fill('purge')
    await dialogOf(page).getByRole('button', { name: 'Purge 3' }).click()
    await outcomeOf(page, '3 events were deleted.')
    await finding.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Overview' }).click()
    await verdict.waitFor()
    await verdict.getByText('past the retention').waitFor({ state: 'detached' })
  })

  it('can close the dialog while a change is under way, which continues', async () => {
    await seed(fixture.sql, [{ status: 'published', secondsAgo: 40 * 86_400 }])
    const page = await pages.open('/doctor')
    await page.getByRole('button', { name: 'Count and purge' }).click()
    await dialogOf(page).getByRole('textbox').fill('purge')
    let answer = () => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    await page.route('**/api/purge', async (route) => {
      await answered
      await route.continue()
    })
    await dialogOf(page).getByRole('button', { name: 'Purge 1' }).click()
    await dialogOf(page).getByText('It continues if you close this.').waitFor()
    await dialogOf(page).getByRole('button', { name: 'Close' }).click()
    answer()
    await outcomeOf(page, '1 event was deleted.')
    expect(await fixture.rows()).toEqual([])
  })

  it('purges what is past its retention, and nothing else', async () => {
    const [, young] = await seed(fixture.sql, [
      { status: 'published', secondsAgo: 40 * 86_400 },
      { status: 'published', secondsAgo: 60 },
    ])
    const page = await pages.open('/doctor')
    await page.getByRole('button', { name: 'Count and purge' }).click()
    await dialogOf(page).getByText('1 event', { exact: true }).waitFor()
    await dialogOf(page).getByRole('textbox').fill('purge')
    await dialogOf(page).getByRole('button', { name: 'Purge 1' }).click()
    await outcomeOf(page, '1 event was deleted.')
    expect(await statuses()).toEqual({ [young!]: 'published' })
  })
})
