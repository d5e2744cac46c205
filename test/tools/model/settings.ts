// The small worlds that are explored: two processes, two aggregates, three events.
import type { Setting } from './world.ts'

const WELL = { processes: 2, poison: null, deadLettersHold: false, without: null } as const

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

export function describeSetting({ units, faults, poison, deadLettersHold }: Setting): string {
  const unitsOfWork = units.map((keys) => `[${keys.join(' ')}]`).join(' ')
  const refused = poison === null ? '' : `, event ${poison} refused`
  const held = deadLettersHold ? ', dead letters hold' : ''
  return `${unitsOfWork}, ${faults} faults${refused}${held}`
}
