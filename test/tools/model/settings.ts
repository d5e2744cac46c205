// The small worlds that are explored: one or two processes, one or two aggregates, three events.
import type { Setting } from './world.ts'

const WELL = {
  processes: 2,
  unlocked: [],
  poison: null,
  deadLettersHold: false,
  scheduled: [],
  without: null,
} as const

/**
 * Two aggregates, and a third event that has to wait for the first, in each of the ways to emit them. The last is
 * by far the largest: three units can interleave in more ways than two.
 */
export function settingsWith(faults: number): Setting[] {
  const mixed = [['x', 'y'], ['x']]
  return [
    { ...WELL, faults, units: [['x', 'x'], ['y']] },
    { ...WELL, faults, units: mixed },
    { ...WELL, faults, units: mixed, poison: 0 },
    { ...WELL, faults, units: mixed, poison: 0, deadLettersHold: true },
    { ...WELL, faults, units: [['x'], ['x'], ['y']] },
  ]
}

/**
 * Two units that do not lock their aggregate, and a third that has to follow what it sees of them. Most of these
 * worlds come after a process has stood still. Two faults lead one process into 15 times as many as one fault does,
 * so `npm run model` leaves the second process out then.
 */
export function unlockedSettingsWith(faults: number, processes: number): Setting[] {
  const three = { ...WELL, faults, processes, units: [['x'], ['x'], ['x']] }
  return [
    { ...three, unlocked: [0, 1] },
    { ...three, unlocked: [0, 1], poison: 0, deadLettersHold: true },
    { ...three, unlocked: [0, 1, 2] },
  ]
}

/**
 * The first event is scheduled, and may be cancelled at any moment. Others of its aggregate are saved with it and after it, only
 * after it, or there are none. The first is larger than the second by far: `npm run model` leaves the second process out of it
 * where there are two faults.
 */
export function scheduledSettingsWith(faults: number, processes = 2): Setting[] {
  const first = { ...WELL, faults, scheduled: [0] }
  return [
    { ...first, processes, units: [['x', 'x'], ['x']] },
    { ...first, units: [['x'], ['x']] },
    { ...first, units: [['x']] },
  ]
}

export function describeSetting(setting: Setting): string {
  const { processes, faults, poison, deadLettersHold, scheduled } = setting
  const units = setting.units.map((keys, u) => {
    return `[${keys.join(' ')}]${setting.unlocked.includes(u) ? ' unlocked' : ''}`
  })
  const alone = processes === 1 ? ', one process' : ''
  const refused = poison === null ? '' : `, event ${poison} refused`
  const held = deadLettersHold ? ', dead letters hold' : ''
  const later = scheduled.map((seq) => `, event ${seq} scheduled`).join('')
  return `${units.join(' ')}, ${faults} faults${alone}${refused}${held}${later}`
}
