// `aftercommit cdc-config`: a connector and the statements for it, without a connection and without the secrets of the URL.
import { expect, it } from 'vitest'
import { runCli } from '../../support/built-cli.ts'

const url = 'postgres://app:secret@nowhere.invalid:6432/my-shop'

it('prints the connector for the database of the URL, and neither its user nor its password', async () => {
  const { code, stdout } = await runCli(['cdc-config', '--host', 'db.internal'], { url })
  expect(code).toBe(0)
  expect(stdout).not.toMatch(/secret|"app"/)
  const { name, config } = JSON.parse(stdout) as { name: string; config: Record<string, string> }
  expect(name).toMatch(/^aftercommit_my_shop_public_outbox_[0-9a-f]{8}$/)
  expect(config).toMatchObject({
    'database.hostname': 'db.internal',
    'database.port': '6432',
    'database.dbname': 'my-shop',
    'database.user': 'aftercommit_cdc',
    'database.password': '${env:AFTERCOMMIT_CDC_PASSWORD}',
    'slot.name': name,
    'publication.name': 'aftercommit_public_outbox',
    'table.include.list': 'public.outbox',
  })
})

it('prints the statements that prepare the database, for the names that were given', async () => {
  const args = ['cdc-config', '--sql', '--schema', 'shop', '--table', 'Events', '--user', 'dbz']
  const { code, stdout } = await runCli(args, {})
  expect(code).toBe(0)
  expect(stdout).toMatch(
    /^create publication "aftercommit_shop__vents_[0-9a-f]{8}" for table "shop"."Events"/,
  )
  expect(stdout).toContain("with (publish = 'insert', publish_via_partition_root = true);")
  expect(stdout).toContain('create role "dbz" login replication;')
})

it('asks for the database where it has none', async () => {
  const { code, stderr } = await runCli(['cdc-config'], {})
  expect(code).toBe(2)
  expect(stderr).toContain('no database; set DATABASE_URL')
})
