// The connector of relay: 'cdc', where it is in use: an instance runs with it, the newest event was saved for it, or its
// publication is there.
import { isDenied } from '../../store/database.ts'
import { findBehind, findUnprepared } from '../cdc.ts'
import { splitBySeen } from '../seen-instances.ts'
import type { Check, DoctorParts, Found } from './finding.ts'

export const cdcCheck: Check = {
  name: 'cdc',
  readsEvents: true,
  async run(parts, _, skip) {
    const { doctor, table, limits } = parts
    const found = await doctor.cdc()
    const isRelied = await isReliedOn(parts, skip)
    if (!isRelied && found.publication === null) return []
    // If nothing relies on it, nothing is lost yet, but may be when an instance starts.
    const severity = isRelied ? 'error' : 'warning'
    const unprepared = findUnprepared(found, table).map((one): Found => ({ severity, ...one }))
    const behind = findBehind(found, limits.slotBytes).map((one): Found => {
      return { severity: found.slot?.isActive ? 'warning' : severity, ...one }
    })
    return [...unprepared, ...behind]
  },
}

async function isReliedOn(
  { store, doctor }: DoctorParts,
  skip: (reason: string) => void,
): Promise<boolean> {
  const [running] = splitBySeen(await store.control.instances())
  if (running.some(({ settings }) => settings['relay'] === 'cdc')) return true
  // A process that saves without start() is no instance.
  const newest = await doctor.newestEvent().catch((error: unknown) => {
    if (!isDenied(error)) throw error
    skip('whether the newest event was saved for a connector: the role may not read it')
    return null
  })
  return newest?.isForCdc ?? false
}
