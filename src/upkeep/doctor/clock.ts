// Whether the clocks of this machine and of the database agree. Leases use the database's alone; ids, and with them
// partitions and retention, begin with the time of the machine that made them.
import { formatAge } from '../age.ts'
import type { Check } from './finding.ts'

export const clockCheck: Check = {
  name: 'clock',
  async run({ doctor, limits }) {
    const before = Date.now()
    const { clockMs } = await doctor.server()
    const after = Date.now()
    // The server read its clock somewhere between the two.
    const aheadMs = before > clockMs ? before - clockMs : Math.min(0, after - clockMs)
    if (Math.abs(aheadMs) <= limits.clockMs) return []
    const direction = aheadMs > 0 ? 'ahead of' : 'behind'
    return [
      {
        severity: 'warning',
        message: `the clock of this machine is ${formatAge(Math.abs(aheadMs))} ${direction} the database's`,
        remedy:
          'synchronise both with NTP; delivery is not affected, but retention and partitions depend on the time at which ids were made',
      },
    ]
  },
}
