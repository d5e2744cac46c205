// Who gets into `aftercommit dashboard`.
import { expect, it } from 'vitest'
import { checkDoor, doorKeeper } from '../../../src/cli/dashboard/door.ts'
import { isLoopback, isOneOf } from '../../../src/dashboard/hosts.ts'

const TOKEN = 'a-token-of-some-length'

it.each([
  ['127.0.0.1', true],
  ['127.8.8.8', true],
  ['::1', true],
  ['localhost', true],
  ['0.0.0.0', false],
  ['::', false],
  ['10.0.0.1', false],
  ['127.evil.example', false],
  ['shop.example', false],
])('knows whether %s is this machine alone: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected)
})

it('listens on anything else with a token only', () => {
  expect(() => checkDoor({ host: '127.0.0.1' })).not.toThrow()
  expect(() => checkDoor({ host: '0.0.0.0' })).toThrow(/set AFTERCOMMIT_TOKEN/)
  expect(() => checkDoor({ host: '0.0.0.0', token: TOKEN })).not.toThrow()
  expect(() => checkDoor({ host: '0.0.0.0', token: '' })).toThrow(/token/)
  expect(() => checkDoor({ host: '0.0.0.0', token: 'short' })).toThrow(/at least 16/)
  expect(() => checkDoor({ host: '0.0.0.0', token: `${TOKEN}\n` })).toThrow(/printable/)
})

it.each([
  ['localhost:4411', true],
  ['127.0.0.1:4411', true],
  ['[::1]:4411', true],
  ['shop.example', true],
  ['10.0.0.7:4411', true],
  ['ops.example:80', true],
  ['ops.example:81', false],
  ['evil.example', false],
  ['evil.example:4411', false],
  ['localhost.evil.example', false],
  ['localhost@evil.example', false],
  ['evil.example#localhost', false],
  ['', false],
])('answers to the host %s: %s', (header, expected) => {
  expect(isOneOf(['10.0.0.7', 'shop.example', 'ops.example:80'], header)).toBe(expected)
})

it('lets in who knows the token, and nobody else', async () => {
  const access = { by: 'ada', mayAct: true }
  const ask = (authorization?: string) =>
    doorKeeper(
      TOKEN,
      async () => access,
    )(new Request('http://localhost/', { headers: authorization ? { authorization } : {} }))
  expect(await ask(`Bearer ${TOKEN}`)).toBe(access)
  for (const wrong of [undefined, TOKEN, 'Bearer', `Bearer ${TOKEN}x`, `Basic ${TOKEN}`]) {
    expect(await ask(wrong)).toBeNull()
  }
  const open = doorKeeper(undefined, async () => access)
  expect(await open(new Request('http://localhost/'))).toBe(access)
})
