// An hour that ends in what the table holds: a calm shop, a short gap without samples, and payments that stop going out.
import type { Overview, Sample } from '../../../src/dashboard/api.ts'

const STEP_MS = 5_000
const STEPS = 720
/** How many steps ago payments stopped. */
const TROUBLE = 148
const GAP = [430, 462] as const

export function makeUpHour({ now, pending, dead, oldestMs }: Overview): Sample[] {
  const end = Date.parse(now)
  const steps = Array.from({ length: STEPS + 1 }, (_, n) => STEPS - n)
  return steps
    .filter((ago) => ago < GAP[0] || ago > GAP[1])
    .map((ago): Sample => {
      const wave = Math.sin(ago / 55) * 14 + Math.sin(ago / 13) * 5 + noise(ago) * 3
      const share = Math.max(0, (TROUBLE - ago) / TROUBLE)
      const isTroubled = share > 0
      return {
        at: end - ago * STEP_MS,
        pending: Math.round(Math.max(2, 9 + wave / 3) * (1 - share) + share * pending.count),
        dead: ago > 260 ? dead.count - 6 : ago > 90 ? dead.count - 2 : dead.count,
        oldestMs: isTroubled
          ? share * (oldestMs ?? 0)
          : Math.max(8, 45 + wave * 2 + noise(ago) * 30),
        immediate: Math.max(0, 46 + wave - (isTroubled ? 9 : 0)),
        fallback: Math.max(0, 0.6 + noise(ago + 7) + (isTroubled ? 1.5 : 0)),
        failed: isTroubled ? 0.4 + noise(ago + 3) * 0.5 : noise(ago) > 0.9 ? 0.2 : 0,
        latency: {
          p50Ms: 6.5 + noise(ago + 1) * 1.5,
          p95Ms: 19 + wave / 4 + noise(ago + 2) * 3,
          p99Ms: 48 + wave + noise(ago + 5) * 8,
        },
      }
    })
}

/** From 0 to 1, the same in every run. */
function noise(seed: number): number {
  const value = Math.sin(seed * 12.9898) * 43_758.5453
  return value - Math.floor(value)
}
