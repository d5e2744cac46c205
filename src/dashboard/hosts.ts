// Which host names the dashboard accepts. Otherwise a page of another site, whose name briefly points to this server,
// could talk to the dashboard as if it were its own.
import { isIP } from 'node:net'

export function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith('127.')
  return host === '::1' || host.toLowerCase() === 'localhost'
}

/** Whether it is this machine, or one of those. Of those, a name without a port matches every port. */
export function isOneOf(hosts: readonly string[], host: string): boolean {
  const name = nameIn(host)
  return name !== null && (isLoopback(name) || hosts.includes(name) || hosts.includes(host))
}

/** Without the port and brackets. */
export function nameIn(host: string): string | null {
  if (isIP(host) === 6) return host.toLowerCase()
  const url = `http://${host}`
  if (!URL.canParse(url) || !/^[\w.:[\]-]+$/.test(host)) return null
  return new URL(url).hostname.replaceAll(/^\[|\]$/g, '').toLowerCase()
}
