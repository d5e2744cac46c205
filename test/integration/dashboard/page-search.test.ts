// Events are found by what a person knows of them, and an address shows the same list to somebody else.
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import {
  describeWithChromium,
  listOf,
  PHONE,
  useDashboardPages,
} from '../../support/dashboard-page.ts'

describeWithChromium('on the page events are found', () => {
  const fixture = useFixture()
  const pages = useDashboardPages(fixture)

  /** The aggregates of the list, once it is there. */
  async function found(page: Page, count: number): Promise<string[]> {
    const noun = count === 1 ? 'event' : 'events'
    await page.getByText(new RegExp(`^(The first )?${count} ${noun}$`)).waitFor()
    return (await page.locator('tbody .clipped').allInnerTexts()).filter((text) =>
      text.startsWith('order/'),
    )
  }

  it('by an id anywhere in a pasted text', async () => {
    const [id] = await seed(fixture.sql, [{ type: 'OrderPaid' }, {}])
    const page = await pages.open()
    // What it shows was asked for when it began to listen for keys.
    await page.locator('.figure', { hasText: 'Backlog' }).getByText('2 events').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.insertText(`{"msg":"failed","eventId":"${id}"}`)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'OrderPaid' }).waitFor()
    expect(new URL(page.url()).hash).toBe(`#/events/${id}`)
  })

  it('by the UUID of an aggregate, which no event has', async () => {
    const aggregateId = 'a1b7c1de-4f0e-4c8e-9a51-8a2f5b7c1d2e'
    await seed(fixture.sql, [{ aggregateId }, { aggregateId }, { aggregateId: 'other' }])
    const page = await pages.open()
    await page.getByRole('searchbox').fill(aggregateId)
    await page.keyboard.press('Enter')
    expect(await found(page, 2)).toEqual([`order/${aggregateId}`, `order/${aggregateId}`])
  })

  it('by words in the search box', async () => {
    await seed(fixture.sql, [
      { aggregateId: '1', type: 'OrderPaid', topic: 'payments' },
      { aggregateId: '2', type: 'OrderPaid' },
      { aggregateId: '3', topic: 'payments' },
    ])
    const page = await pages.open()
    await page.getByRole('searchbox').fill('type:OrderPaid topic:payments')
    await page.keyboard.press('Enter')
    expect(await found(page, 1)).toEqual(['order/1'])
    await page.getByRole('searchbox').fill('order/3')
    await page.keyboard.press('Enter')
    // Both searches find one event.
    await page.locator(listOf('[name=aggregateId][value="3"]')).waitFor()
    expect(await found(page, 1)).toEqual(['order/3'])
  })

  it.each([
    ['Type', 'OrderPaid', ['order/b']],
    ['Topic', 'payments', ['order/c']],
    ['Aggregate id', 'd', ['order/d']],
  ])('by %s', async (label, text, expected) => {
    await seed(fixture.sql, [
      { aggregateId: 'a' },
      { aggregateId: 'b', type: 'OrderPaid' },
      { aggregateId: 'c', topic: 'payments' },
      { aggregateId: 'd' },
    ])
    const page = await pages.open('/events')
    await found(page, 4)
    await page.getByLabel(label, { exact: true }).fill(text)
    await page.keyboard.press('Enter')
    expect(await found(page, 1)).toEqual(expected)
  })

  it('by status, more than one of them', async () => {
    await seed(fixture.sql, [
      { aggregateId: 'a', status: 'published' },
      { aggregateId: 'b', status: 'failed', attempts: 1, error: 'x' },
      { aggregateId: 'c', status: 'dead_letter', attempts: 10, error: 'x' },
    ])
    const page = await pages.open('/events')
    await found(page, 3)
    await page.getByRole('button', { name: 'Failing' }).click()
    expect(await found(page, 1)).toEqual(['order/b'])
    await page.getByRole('button', { name: 'Dead letter' }).click()
    expect((await found(page, 2)).toSorted()).toEqual(['order/b', 'order/c'])
    expect(new URL(page.url()).hash).toBe('#/events?status=failed,dead_letter')
  })

  it('with the help of values that the page has heard of', async () => {
    await seed(fixture.sql, [
      { type: 'OrderPaid', topic: 'payments', status: 'published' },
      { type: 'OrderLost', topic: 'losses', status: 'dead_letter', error: 'x' },
    ])
    const page = await pages.open('/events')
    expect(await found(page, 2)).toHaveLength(2)
    const offered = (list: string) =>
      page.evaluate<string[]>(
        `[...document.querySelectorAll('#${list} option')].map(({ value }) => value)`,
      )
    expect(await page.getByLabel('Type', { exact: true }).getAttribute('list')).toBe('known-type')
    expect(await offered('known-type')).toEqual(['OrderLost', 'OrderPaid'])
    expect(await offered('known-topic')).toEqual(['losses', 'payments'])
    expect(await offered('known-aggregateType')).toEqual(['order'])
  })

  it('by the time of their save', async () => {
    await seed(fixture.sql, [
      { aggregateId: 'old', secondsAgo: 3 * 86_400, status: 'published' },
      { aggregateId: 'yesterday', secondsAgo: 20 * 3600, status: 'published' },
      { aggregateId: 'new', secondsAgo: 60, status: 'published' },
    ])
    const page = await pages.open('/events')
    await found(page, 3)
    await page.getByRole('combobox', { name: 'Saved' }).selectOption('in the last hour')
    expect(await found(page, 1)).toEqual(['order/new'])
    await page.getByRole('combobox', { name: 'Saved' }).selectOption('between…')
    const local = (hoursAgo: number) => {
      const at = new Date(Date.now() - hoursAgo * 3_600_000)
      return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
    }
    await page.getByLabel('Saved since', { exact: true }).fill(local(24))
    await page.getByLabel('Saved since', { exact: true }).blur()
    expect(await found(page, 2)).toEqual(['order/new', 'order/yesterday'])
    await page.getByLabel('Saved before', { exact: true }).fill(local(10))
    await page.getByLabel('Saved before', { exact: true }).blur()
    expect(await found(page, 1)).toEqual(['order/yesterday'])
  })

  it('on a phone, with every filter in sight and one press to take it out', async () => {
    await seed(fixture.sql, [
      { aggregateId: 'a', topic: 'payments' },
      { aggregateId: 'b', topic: 'payments', type: 'OrderPaid' },
      { aggregateId: 'c' },
    ])
    const page = await pages.open('/events?topic=payments&type=OrderPaid&savedSince=24h', {
      browser: PHONE,
    })
    expect(await found(page, 1)).toEqual(['order/b'])
    expect(await page.getByLabel('Topic', { exact: true }).isVisible()).toBe(false)
    const active = page.getByRole('list', { name: 'Active filters' })
    expect(await active.getByRole('listitem').allInnerTexts()).toEqual([
      'Type: OrderPaid',
      'Topic: payments',
      'Saved in the last 24h',
    ])
    await active.getByRole('button', { name: 'Remove the filter Type: OrderPaid' }).click()
    expect((await found(page, 2)).toSorted()).toEqual(['order/a', 'order/b'])
    // The fields themselves say it when they are shown.
    await page.getByRole('button', { name: 'More filters' }).click()
    expect(await page.getByLabel('Topic', { exact: true }).inputValue()).toBe('payments')
    expect(await active.isVisible()).toBe(false)
  })

  it('again by the same address, in another tab', async () => {
    await seed(fixture.sql, [
      { aggregateId: 'a', status: 'dead_letter', attempts: 10, error: 'x', topic: 'pay & ship' },
      { aggregateId: 'b', status: 'dead_letter', attempts: 10, error: 'x' },
      { aggregateId: 'c', topic: 'pay & ship' },
    ])
    const first = await pages.open('/events')
    await found(first, 3)
    await first.getByRole('button', { name: 'Dead letter' }).click()
    await found(first, 2)
    await first.getByLabel('Topic', { exact: true }).fill('pay & ship')
    await first.keyboard.press('Enter')
    expect(await found(first, 1)).toEqual(['order/a'])
    const second = await pages.open(new URL(first.url()).hash.slice(1))
    expect(await found(second, 1)).toEqual(['order/a'])
    expect(await second.getByLabel('Topic', { exact: true }).inputValue()).toBe('pay & ship')
    const pressed = second.getByRole('button', { name: 'Dead letter' })
    expect(await pressed.getAttribute('aria-pressed')).toBe('true')
  })

  it('with the filter still there on the way back from an event', async () => {
    await seed(fixture.sql, [{ aggregateId: 'a' }, { aggregateId: 'b', type: 'OrderPaid' }])
    const page = await pages.open('/events?type=OrderPaid')
    await page.getByRole('link', { name: 'OrderPaid' }).click()
    await page.getByRole('heading', { name: 'OrderPaid' }).waitFor()
    await page.goBack()
    expect(await found(page, 1)).toEqual(['order/b'])
  })

  it('page by page, each once', async () => {
    await seed(
      fixture.sql,
      Array.from({ length: 120 }, (_, n) => ({ aggregateId: String(n), secondsAgo: 200 - n })),
    )
    const page = await pages.open('/events')
    await found(page, 50)
    await page.getByRole('button', { name: 'Show more' }).click()
    await found(page, 100)
    await page.getByRole('button', { name: 'Show more' }).click()
    const all = await found(page, 120)
    expect(all).toEqual(Array.from({ length: 120 }, (_, n) => `order/${119 - n}`))
    expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0)
  })

  it('without rows that move: what is new waits for a click', async () => {
    await seed(fixture.sql, [{ aggregateId: 'a' }])
    const page = await pages.open('/events')
    await found(page, 1)
    await seed(fixture.sql, [{ aggregateId: 'b' }])
    await page.getByRole('button', { name: 'Show what has changed' }).click()
    expect(await found(page, 2)).toEqual(['order/b', 'order/a'])
  })

  it('behind those that they wait for', async () => {
    const outbox = fixture.handling({})
    await outbox.withOutbox(async (_, emit) => {
      emit({ type: 'OrderPlaced', aggregateType: 'order', aggregateId: '7', payload: {} })
      emit({ type: 'OrderPaid', aggregateType: 'order', aggregateId: '7', payload: {} })
    })
    const [first, second] = await fixture.rows()
    await fixture.sql`
      update outbox set status = 'failed', attempts = 1, last_error = 'x', lease_token = null,
        available_at = now() + interval '1 hour' where id = ${first!.id}`
    await fixture.sql`
      update outbox set lease_token = null, available_at = now() where id = ${second!.id}`
    const page = await pages.open(`/events/${second!.id}`)
    await page.getByRole('link', { name: first!.id }).click()
    await page.getByRole('heading', { name: 'OrderPlaced' }).waitFor()
    expect(new URL(page.url()).hash).toBe(`#/events/${first!.id}`)
  })
})
