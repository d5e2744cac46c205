// The connector of relay: 'cdc', where it is in use: an instance runs with it, or its publication is there.
import { findBehind, findUnprepared } from '../cdc.ts'
import { splitBySeen } from '../seen-instances.ts'
import type { Check, DoctorParts, Found } from './finding.ts'

export const cdcCheck: Check = {
  name: 'cdc',
  async run(parts) {
    const { doctor, table, limits } = parts
    const found = await doctor.cdc()
    const isRelied = await isReliedOn(parts)
    if (!isRelied && found.publication === null) return []
    // Without an instance that relies on it, nothing is lost yet, but may be when one starts.
    const severity = isRelied ? 'error' : 'warning'
    const unprepared = findUnprepared(found, table).map((one): Found => ({ severity, ...one }))
    const behind = findBehind(found, limits.slotBytes).map((one): Found => {
      return { severity: found.slot?.isActive ? 'warning' : severity, ...one }
    })
    return [...unprepared, ...behind]
  },
}

async function isReliedOn({ store }: DoctorParts): Promise<boolean> {
  const [running] = splitBySeen(await store.control.instances())
  return running.some(({ settings }) => settings['relay'] === 'cdc')
}
