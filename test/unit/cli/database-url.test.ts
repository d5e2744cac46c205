// The connection string never reaches a terminal or a log.
import { expect, it } from 'vitest'
import { databaseUrlProblem, hostOf, withoutSecrets } from '../../../src/cli/database-url.ts'

it.each([
  ['postgres://ada:s3cr%40t@db:5432/shop', 's3cr%40t'],
  ['postgres://ada:s3cr%40t@db:5432/shop', 's3cr@t'],
  ['postgresql://ada:a@b:c@db/shop', 'a@b:c'],
  ['postgres://ada:100%@db/shop', '100%'],
])('of %s hides %s', (url, secret) => {
  const text = `connect ${url} failed: password ${secret} is wrong`
  expect(withoutSecrets(text, url)).toBe('connect *** failed: password *** is wrong')
})

it('hides a connection string that it does not know, too', () => {
  expect(withoutSecrets("unknown option '--url=postgres://a:b@c/d'", null)).toBe(
    "unknown option '--url=***'",
  )
})

it('hides one with a misspelt scheme', () => {
  expect(withoutSecrets("unknown command 'postgers://ada:secret@db/shop'", null)).toBe(
    "unknown command '***'",
  )
})

it.each([
  ['postgres://ada:a@b@db.example.com:5432/shop?sslmode=require', 'db.example.com:5432'],
  ['postgres://localhost/shop', 'localhost'],
  ['postgres://localhost', 'localhost'],
  ['postgres:///shop', 'the host'],
  ['postgres://ada:2024/secret@db/shop', 'the host'],
  ['postgres://ada:s@cr/t@db/shop', 'the host'],
])('finds the host of %s', (url, host) => {
  expect(hostOf(url)).toBe(host)
})

it('refuses what is no connection string, without quoting it', () => {
  expect(databaseUrlProblem('postgres://localhost/shop')).toBeNull()
  expect(databaseUrlProblem('hunter2')).not.toContain('hunter2')
})

it('hides a password among the parameters, and takes none of them for a host', () => {
  const url = 'postgres://h:5432/db?user=me@corp&password=hunter2'
  expect(hostOf(url)).toBe('h:5432')
  expect(withoutSecrets('password hunter2 is wrong', url)).toBe('password *** is wrong')
})
