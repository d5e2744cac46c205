// A database of a suite's driver behind a proxy, with one connection, for what happens when that one breaks.
import { afterAll, beforeAll, inject } from 'vitest'
import type { AnyDatabase } from '../../src/index.ts'
import type { OpenedDatabase } from './drivers.ts'
import type { Fixture } from './fixture.ts'
import { startProxy, type TcpProxy } from './servers/tcp-proxy.ts'

export interface Proxied {
  readonly proxy: TcpProxy
  readonly db: AnyDatabase
}

export function useProxied(fixture: Fixture<AnyDatabase>): Proxied {
  let proxy: TcpProxy
  let opened: OpenedDatabase<AnyDatabase>
  beforeAll(async () => {
    proxy = await startProxy({ port: Number(new URL(inject('databaseUrl')).port) })
    const url = new URL(fixture.url)
    url.port = String(proxy.port)
    opened = fixture.driver.open(url.href, { max: 1 })
  })
  afterAll(async () => {
    await opened.close()
    await proxy.stop()
  })
  return {
    get proxy() {
      return proxy
    },
    get db() {
      return opened.db
    },
  }
}
