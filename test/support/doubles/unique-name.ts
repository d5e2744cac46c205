// A name no other test uses, for topics, databases and consumer groups on shared servers.
import { randomBytes } from 'node:crypto'

export function uniqueName(prefix: string): string {
  return `${prefix}-${randomBytes(6).toString('hex')}`
}
