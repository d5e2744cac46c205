// Who may see, who may act, and what must come from the page itself.
import { describe, expect, it } from 'vitest'
import { admit, requireActor, requireOwnPage } from '../../../src/dashboard/access.ts'
import type { DashboardOptions } from '../../../src/dashboard/options.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'

const request = new Request('http://shop.example/outbox/api/overview', {
  headers: { cookie: 'session=1', authorization: 'Bearer x' },
})
const ask = (authorize: unknown, logger = recordingLogger()) =>
  admit(request, authorize as DashboardOptions['authorize'], logger)

describe('admit', () => {
  it('gives authorize the request, with its cookies', async () => {
    const seen: unknown[] = []
    await ask(({ headers }: Request) => {
      seen.push(headers.get('cookie'), headers.get('authorization'))
      return {}
    })
    expect(seen).toEqual(['session=1', 'Bearer x'])
  })

  it.each([
    ['an empty object', {}, { by: null, mayAct: false }],
    ['a name', { by: 'ada' }, { by: 'ada', mayAct: false }],
    ['permission', { by: 'ada', mayAct: true }, { by: 'ada', mayAct: true }],
    ['something that is nearly permission', { mayAct: 'yes' }, { by: null, mayAct: false }],
    ['a name that is none', { by: 7, mayAct: true }, { by: null, mayAct: true }],
  ])('lets in with %s', async (_, access, person) => {
    expect(await ask(() => Promise.resolve(access))).toEqual(person)
  })

  it.each([
    [null, 401],
    [undefined, 401],
    [false, 403],
    [true, 403],
    ['ada', 403],
    [1, 403],
    [new Response('sign in', { status: 401 }), 403],
    [{ error: 'not signed in' }, 403],
    [[], 403],
  ])('refuses when authorize returns %j', async (returned, status) => {
    await expect(ask(() => returned)).rejects.toMatchObject({ status })
  })

  it('refuses when authorize throws, logs why and does not show it', async () => {
    const logger = recordingLogger()
    const failing = () => {
      throw new Error('no session store at redis://:secret@10.0.0.1')
    }
    const refused = ask(failing, logger)
    await expect(refused).rejects.toMatchObject({ status: 403, code: 'FORBIDDEN' })
    await expect(refused).rejects.not.toThrow(/secret/)
    expect(logger.lines).toMatchObject([
      { level: 'error', message: expect.stringContaining('authorize of the dashboard failed') },
    ])
  })

  it('permits no change to a person who may only look', () => {
    expect(() => requireActor({ by: 'ada', mayAct: true })).not.toThrow()
    expect(() => requireActor({ by: 'ada', mayAct: false })).toThrow(/change nothing/)
  })
})

describe('requireOwnPage', () => {
  const own = {
    'content-type': 'application/json',
    'x-aftercommit': '1',
    origin: 'http://shop.example',
  }
  const post =
    (headers: Record<string, string>, hosts: string[] | null = null) =>
    () =>
      requireOwnPage(
        new Request('http://shop.example/outbox/api/retry', { method: 'POST', headers }),
        hosts,
      )

  it.each([
    ['its own origin', own],
    ['its own origin on https, behind a proxy', { ...own, origin: 'https://shop.example' }],
    ['charset', { ...own, 'content-type': 'application/json; charset=utf-8' }],
    ['same-origin by the browser', { ...own, origin: 'null', 'sec-fetch-site': 'same-origin' }],
    ['the host header', { ...own, origin: 'https://www.example', host: 'www.example' }],
  ])('takes a request with %s', (_, headers) => {
    expect(post(headers)).not.toThrow()
  })

  it('takes a host that a proxy was asked for if the application names it, and no other', () => {
    const proxied = { ...own, origin: 'https://www.example', 'x-forwarded-host': 'www.example' }
    expect(post(proxied)).toThrow(/another site/)
    expect(post(proxied, ['www.example', 'shop.example'])).not.toThrow()
    expect(post(proxied, ['www.example:8080'])).toThrow(/another site/)
    expect(post({ ...own, origin: 'http://localhost' }, ['www.example'])).toThrow(/another site/)
  })

  const without = (name: string) =>
    Object.fromEntries(Object.entries(own).filter(([key]) => key !== name))

  it.each([
    ['no content type', without('content-type'), 415],
    ['a form', { ...own, 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['text', { ...own, 'content-type': 'text/plain' }, 415],
    ['no header of ours', without('x-aftercommit'), 403],
    ['no origin', without('origin'), 403],
    ['the origin of a sandbox', { ...own, origin: 'null' }, 403],
    ['another origin', { ...own, origin: 'http://evil.example' }, 403],
    ['another port', { ...own, origin: 'http://shop.example:8080' }, 403],
    ['an origin that begins like ours', { ...own, origin: 'http://shop.example.evil.io' }, 403],
    ['another site by the browser', { ...own, 'sec-fetch-site': 'cross-site' }, 403],
    ['a sibling site by the browser', { ...own, 'sec-fetch-site': 'same-site' }, 403],
  ])('refuses a request with %s', (_, headers, status) => {
    expect(post(headers)).toThrow(expect.objectContaining({ status }))
  })
})
