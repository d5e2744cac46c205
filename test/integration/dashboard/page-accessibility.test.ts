// Each view in both themes and on a phone: axe finds nothing serious, nothing is wider than the screen, and the keyboard
// alone is enough.
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { describeWithChromium, PHONE, useDashboardPages } from '../../support/dashboard-page.ts'

/** A view, and what is there once it is drawn. */
const VIEWS = [
  ['overview', '', 'Failures by cause'],
  ['events', '/events', '4 events'],
  ['event', '/events/DEAD', 'Given up'],
  ['failures', '/failures', 'has no address'],
  ['topics', '/topics', 'broker moves'],
  ['instances', '/instances', 'No instance runs'],
  ['doctor', '/doctor', 'Checked'],
] as const

describeWithChromium('every view of the page', () => {
  const fixture = useFixture()
  const pages = useDashboardPages(fixture)

  async function openTroubled(where: string, there: string, browser: object): Promise<Page> {
    const [dead] = await seed(fixture.sql, [
      { status: 'dead_letter', attempts: 10, error: 'order 17 has no address'.repeat(8) },
      { status: 'failed', attempts: 2, error: 'x', dueInSeconds: 600, topic: 'payments' },
      { status: 'published', aggregateId: 'a'.repeat(200), type: 'T'.repeat(120) },
      { status: 'pending' },
    ])
    await fixture.handling({}).pause('payments', { by: 'ada', reason: 'broker moves' })
    const page = await pages.open(where.replace('DEAD', dead!), { browser })
    await page.getByText(there).first().waitFor()
    await page.locator('.verdict-chip.verdict-trouble').waitFor()
    return page
  }

  describe.each(['light', 'dark'] as const)('in the %s theme', (colorScheme) => {
    it.each(VIEWS)('%s has nothing that axe calls serious', async (_, where, there) => {
      const page = await openTroubled(where, there, { colorScheme })
      expect(await findSerious(page)).toEqual([])
    })

    it('asks in a dialog that has nothing serious either', async () => {
      const page = await openTroubled('/failures', 'has no address', { colorScheme })
      await page.getByRole('button', { name: 'Discard the group' }).first().click()
      await page
        .getByRole('dialog')
        .getByText(/^1 (dead letter|failing event): \w/)
        .waitFor()
      expect(await findSerious(page)).toEqual([])
    })
  })

  it.each(VIEWS)('%s is no wider than a phone', async (_, where, there) => {
    const page = await openTroubled(where, there, PHONE)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    const cut = await page.evaluate(`[...document.querySelectorAll('main *, nav a')]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
      .map((element) => element.className)`)
    expect(cut).toEqual([])
  })

  it('can be reached, searched and acted on by the keyboard alone', async () => {
    const page = await openTroubled('', 'Failures by cause', {})
    await page.keyboard.press('Tab')
    expect(await page.locator(':focus').innerText()).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    expect(await page.locator('main:focus').count()).toBe(1)
    await page.getByRole('navigation').getByRole('link', { name: 'Failures' }).press('Enter')
    // The heading has the focus, so that a screen reader says where one is.
    await page.locator('h1:focus', { hasText: 'Failures' }).waitFor()
    const retry = page.getByRole('button', { name: 'Retry the group' }).first()
    await retry.press('Enter')
    await page.getByRole('dialog').waitFor()
    for (let step = 0; step < 5; step += 1) {
      await page.keyboard.press('Tab')
      const outside = page.locator('#page :focus').and(page.locator(':not(dialog *)'))
      expect(await outside.count()).toBe(0)
    }
    await page.keyboard.press('Escape')
    await page.locator('button:focus', { hasText: 'Retry' }).waitFor()
  })

  it('stays in the theme that was chosen', async () => {
    const page = await openTroubled('', 'Failures by cause', { colorScheme: 'light' })
    const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const light = await ground()
    await page.getByRole('button', { name: 'Theme: system' }).click()
    expect(await ground()).toBe(light)
    await page.getByRole('button', { name: 'Theme: light' }).click()
    const dark = await ground()
    expect(dark).not.toBe(light)
    await page.reload()
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor()
    expect(await ground()).toBe(dark)
  })

  it('does not move while it refreshes', async () => {
    const page = await openTroubled('', 'Failures by cause', {})
    await page.getByText('has no address').waitFor()
    await page.evaluate(`window.shifts = 0
      new PerformanceObserver((list) => {
        for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) shifts += value
      }).observe({ type: 'layout-shift' })`)
    for (let round = 0; round < 2; round += 1) {
      await page.waitForResponse(/overview/)
    }
    expect(await page.evaluate('shifts')).toBeLessThan(0.01)
  })
})

type Violation = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }

async function findSerious(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run(document)')) as { violations: Violation[] }
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    )
}
