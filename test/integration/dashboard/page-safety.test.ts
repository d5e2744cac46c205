// What the page keeps to itself, what it refuses to run, and what it says when it cannot know better.
import { expect, it } from 'vitest'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { describeWithChromium, useDashboardPages } from '../../support/dashboard-page.ts'

const MARKUP =
  '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'

describeWithChromium('the page', () => {
  const fixture = useFixture()
  const pages = useDashboardPages(fixture)

  it('loads payload and headers on a click, and not before', async () => {
    const [id] = await seed(fixture.sql, [{ payload: { card: '4111-1111' } }])
    const page = await pages.open(`/events/${id}`)
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.getByText('they are not loaded').waitFor()
    expect(await page.content()).not.toContain('4111-1111')
    expect(asked.filter((url) => url.endsWith('/content'))).toEqual([])
    await page.getByRole('button', { name: 'Show payload and headers' }).click()
    await page.getByText('"card": "4111-1111"').waitFor()
    await page.getByText('tenant').waitFor()
    await page.getByRole('button', { name: 'Hide' }).click()
    await page.getByText('4111-1111').waitFor({ state: 'detached' })
  })

  it('shows markup in any field of an event as text', async () => {
    const [id] = await seed(fixture.sql, [
      {
        type: MARKUP,
        topic: MARKUP,
        aggregateId: MARKUP,
        error: MARKUP,
        payload: { note: MARKUP },
        status: 'dead_letter',
        attempts: 10,
      },
    ])
    const page = await pages.open(`/events/${id}`)
    await page.getByRole('heading', { name: MARKUP }).waitFor()
    await page.getByRole('button', { name: 'Show payload and headers' }).click()
    expect(await page.getByLabel('Payload', { exact: true }).innerText()).toBe(
      JSON.stringify({ note: MARKUP }, null, 2),
    )
    for (const name of ['Events', 'Failures', 'Overview']) {
      await page.getByRole('navigation').getByRole('link', { name }).click()
      await page.getByText(MARKUP).first().waitFor()
      expect(await page.locator('main img, main script').count()).toBe(0)
    }
    expect(await page.title()).not.toBe('owned')
  })

  it('finds with markup, quotes and SQL in every field what has it, and nothing else', async () => {
    const text = `'"; drop table outbox; -- <b>&amp;%_`
    await seed(fixture.sql, [{ type: text, topic: text, aggregateId: text, error: text }, {}])
    const page = await pages.open('/events')
    await page.getByText('2 events', { exact: true }).waitFor()
    for (const label of ['Type', 'Topic', 'Aggregate id', 'Error']) {
      await page.getByLabel(label, { exact: true }).fill(text)
      await page.keyboard.press('Enter')
      await page.getByText('1 event', { exact: true }).waitFor()
    }
    await page.getByRole('link', { name: text }).click()
    await page.getByRole('heading', { name: text }).waitFor()
    expect(await fixture.rows()).toHaveLength(2)
  })

  it('has an icon that its policy lets in', async () => {
    const page = await pages.open()
    const isShown = await page.evaluate(`new Promise((resolve) => {
      const icon = new Image()
      icon.onload = () => resolve(true)
      icon.onerror = () => resolve(false)
      icon.src = document.querySelector('link[rel=icon]')?.href ?? 'none'
    })`)
    expect(isShown).toBe(true)
  })

  it('has no actions for a person who may only look, and says so', async () => {
    const [id] = await seed(fixture.sql, [{ status: 'dead_letter', attempts: 10, error: 'x' }])
    const page = await pages.open('', { authorize: () => ({ by: 'bob' }) })
    await page.getByText('Read only').waitFor()
    await page.getByText('The server lets you look, not act.').waitFor()
    const acting = await pages.open()
    const acts = /retry|discard|pause|resume|purge/i
    for (const [view, there] of [
      ['/failures', 'Example'],
      ['/topics', 'Nothing is paused'],
      ['/doctor', 'Checked'],
      ['/events', '1 event'],
      [`/events/${id}`, 'Given up'],
    ] as const) {
      for (const [tab, expected] of [
        [page, false],
        [acting, true],
      ] as const) {
        await tab.goto(`${tab.url().split('#')[0]}#${view}`)
        await tab.getByText(there).first().waitFor()
        const count = await tab.getByRole('button', { name: acts }).count()
        expect([view, count > 0]).toEqual([view, expected])
      }
    }
  })

  it('asks for a token, again if it is wrong, and keeps it for the tab', async () => {
    await seed(fixture.sql, [{ status: 'dead_letter', attempts: 10, error: 'x' }])
    const authorize = (request: Request) =>
      request.headers.get('authorization') === 'Bearer let me in' ? { mayAct: true } : null
    const page = await pages.open('/failures', { authorize })
    const dialog = page.getByRole('dialog')
    await dialog.getByText('needs a token').waitFor()
    await dialog.getByText('your session has ended: sign in again').waitFor()
    await page.keyboard.press('Escape')
    await dialog.getByLabel('Token').fill('guess')
    await page.keyboard.press('Enter')
    await dialog.getByText('did not accept').waitFor()
    await dialog.getByLabel('Token').fill('let me in')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Retry the group' }).waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Retry the group' }).waitFor()
    expect(await dialog.count()).toBe(0)
    expect(await page.evaluate('localStorage.length')).toBe(0)
  })

  it('shows a refusal of an action in the dialog, and stays there', async () => {
    const [id] = await seed(fixture.sql, [{ status: 'dead_letter', attempts: 10, error: 'x' }])
    let mayAct = true
    const page = await pages.open(`/events/${id}`, { authorize: () => ({ mayAct }) })
    await page.getByRole('button', { name: 'Retry now' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 dead letter').waitFor()
    mayAct = false
    await dialog.getByRole('button', { name: 'Retry 1' }).click()
    await dialog.getByRole('alert').getByText('You may look, and change nothing.').waitFor()
    expect((await fixture.rows())[0]).toMatchObject({ status: 'dead_letter' })
  })

  it('keeps showing what it knew, with its age, while the server is away', async () => {
    await seed(fixture.sql, [{}, {}])
    let isAway = false
    const before = () => (isAway ? new Response('', { status: 502 }) : null)
    const page = await pages.open('', { before })
    const backlog = page.locator('.figure', { hasText: 'Backlog' })
    await backlog.getByText('2 events').waitFor()
    isAway = true
    await page.getByRole('region', { name: 'Verdict' }).getByText('Unreachable').waitFor()
    await page.getByText(/Below is what it said .* ago/).waitFor()
    expect(await backlog.getByText('2 events').count()).toBe(1)
    isAway = false
    await page
      .getByRole('region', { name: 'Verdict' })
      .getByText('Unreachable')
      .waitFor({ state: 'detached' })
  })

  it('asks as often as a person chose, which the browser remembers, or only when told to', async () => {
    const page = await pages.open()
    await page.clock.install()
    await page.reload()
    const idle = page.getByRole('region', { name: 'Verdict' }).getByText('Idle')
    await idle.waitFor()
    let asked = 0
    page.on('request', (request) => void (asked += request.url().includes('/overview') ? 1 : 0))
    const asksWithin = async (ms: number) => {
      const response = page.waitForResponse(/overview/)
      await page.clock.runFor(ms)
      await (await response).finished()
    }
    await asksWithin(5_000)
    const rate = page.getByLabel('Refresh', { exact: true })
    // A new rate begins with a look.
    await Promise.all([page.waitForResponse(/overview/), rate.selectOption('1 min')])
    asked = 0
    await page.clock.runFor(50_000)
    expect(asked).toBe(0)
    await asksWithin(15_000)
    await Promise.all([page.waitForResponse(/overview/), rate.selectOption('off')])
    await page.reload()
    await idle.waitFor()
    asked = 0
    await page.clock.runFor(600_000)
    expect(asked).toBe(0)
    await Promise.all([
      page.waitForResponse(/overview/),
      page.getByRole('button', { name: 'Refresh now' }).click(),
    ])
  })

  it('asks for nothing while its tab is hidden, and at once when it is seen again', async () => {
    const page = await pages.open()
    // So that the page's own timers are those of the clock.
    await page.clock.install()
    await page.reload()
    await page.getByRole('region', { name: 'Verdict' }).getByText('Idle').waitFor()
    const hide = (hidden: boolean) => `
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} })
      document.dispatchEvent(new Event('visibilitychange'))`
    await page.evaluate(hide(true))
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.clock.runFor(60_000)
    expect(asked).toEqual([])
    const refreshed = page.waitForRequest(/overview/)
    await page.evaluate(hide(false))
    await refreshed
  })
})
