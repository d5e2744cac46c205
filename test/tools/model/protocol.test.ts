// The protocol itself, in every state that a small world can get into: two processes, two aggregates, three
// events, and things that go wrong at any moment (crash, freeze, lost answer, late ack, open circuit, refusal,
// unknown commit). `npm run model` does the same with more faults.
import { describe, expect, it } from 'vitest'
import { explore } from '../model/explore.ts'
import { describeSetting, settingsWith } from '../model/settings.ts'
import { type Property, type Rule, RULES } from '../model/world.ts'

const TIMEOUT = { timeout: 300_000 }
const [well] = settingsWith(2)
const twoFaults = { ...well!, units: [['x'], ['x']] }

describe('nothing is lost, invented, overtaken, undone, sent without a lease, or doubled without an excuse', () => {
  const settings = [...settingsWith(0), ...settingsWith(1), twoFaults]
  it.each(settings.map((setting) => [describeSetting(setting), setting] as const))(
    '%s',
    TIMEOUT,
    (_, setting) => {
      const { worlds, counterexample } = explore(setting)
      expect(counterexample).toBeNull()
      // Or it has explored nothing.
      expect(worlds).toBeGreaterThan(50)
    },
  )
})

describe('a counterexample is found without the rule', () => {
  const broken: Record<Rule, Property> = {
    'confirmed commits only': 'nothing is invented',
    'no send on a stale lease': 'no send on a stale lease',
    'a send under way keeps its lease': 'nothing arrives twice without an excuse',
    'a renewal is for one token': 'no send on a stale lease',
    'failures are fenced': 'published is terminal',
    'a timeout is no ack': 'nothing is lost',
    'order on the immediate path': 'nothing is overtaken',
    'order of claims': 'nothing is overtaken',
    'leases end': 'nothing is lost',
  }
  it.each(RULES)('%s', TIMEOUT, (without) => {
    const lookFor = broken[without]
    const { counterexample } = explore({ ...twoFaults, without, lookFor })
    expect(counterexample?.property).toBe(lookFor)
    expect(counterexample?.moves).not.toHaveLength(0)
  })
})
