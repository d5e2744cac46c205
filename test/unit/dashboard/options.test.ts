// The options of dashboard(): checked before anything runs, each with its remedy.
import { expect, it } from 'vitest'
import { dashboard, type DashboardOptions } from '../../../src/dashboard/dashboard.ts'
import { resolveDashboardOptions } from '../../../src/dashboard/options.ts'
import type { Outbox } from '../../../src/index.ts'

const authorize = () => null
const resolve = (options: unknown) => resolveDashboardOptions(options as DashboardOptions)

it('has one required option, and defaults', () => {
  expect(resolve({ authorize })).toEqual({
    authorize,
    basePath: '/outbox',
    hosts: null,
    redact: null,
  })
  const hosts = ['Shop.example', '10.0.0.7:3000', '::', '[2001:DB8::1]']
  expect(resolve({ authorize, hosts }).hosts).toEqual([
    'shop.example',
    '10.0.0.7:3000',
    '::',
    '2001:db8::1',
  ])
  expect(resolve({ authorize, basePath: '/' }).basePath).toBe('')
  expect(resolve({ authorize, basePath: '/a/b-c.d' }).basePath).toBe('/a/b-c.d')
})

it.each<[unknown, RegExp]>([
  [undefined, /takes an object with options/],
  [{}, /authorize must be a function that decides who may see/],
  [{ authorize: true }, /authorize must be a function/],
  [{ authorize, path: '/x' }, /no option 'path'/],
  [{ authorize, redakt: () => {} }, /did you mean 'redact'/],
  [{ authorize, redact: 'all' }, /redact must be a function/],
  [{ authorize, basePath: 'outbox' }, /basePath must be a path such as/],
  [{ authorize, basePath: '/outbox/' }, /without a slash at its end/],
  [{ authorize, basePath: '/"><script>' }, /basePath must be a path/],
  [{ authorize, basePath: '/a/../b' }, /basePath must be a path/],
  [{ authorize, basePath: '//evil.example' }, /basePath must be a path/],
  [{ authorize, hosts: [] }, /hosts must be a list of host names such as/],
  [{ authorize, hosts: 'shop.example' }, /hosts must be a list/],
  [{ authorize, hosts: ['https://shop.example'] }, /hosts must be a list/],
  [{ authorize, basePath: 7 }, /basePath must be a path/],
])('refuses %j', (options, message) => {
  expect(() => resolve(options)).toThrow(message)
})

it('takes nothing but an outbox', () => {
  for (const other of [null, {}, () => {}]) {
    expect(() => dashboard(other as unknown as Outbox, { authorize })).toThrow(
      'dashboard() takes what createOutbox() returns',
    )
  }
})
