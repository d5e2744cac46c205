// The protocol itself, in every state that a small world can get into: two processes, two aggregates, three
// events, and things that go wrong at any moment (crash, freeze, lost answer, late ack, open circuit, refusal,
// late or unknown commit). `npm run model` does the same with more faults.
import { describe, expect, it } from 'vitest'
import { explore } from './explore.ts'
import {
  describeSetting,
  scheduledSettingsWith,
  settingsWith,
  unlockedSettingsWith,
} from './settings.ts'
import { type Property, type Rule, RULES, type Setting } from './world.ts'

const TIMEOUT = { timeout: 300_000 }
const [well] = settingsWith(2)
const twoFaults = { ...well!, units: [['x'], ['x']] }
const [unlocked] = unlockedSettingsWith(0, 2)
const [unlockedWithFault] = unlockedSettingsWith(1, 2)
const [, scheduled, scheduledAlone] = scheduledSettingsWith(1)

describe('nothing is lost, invented, overtaken, undone, sent without a lease or after its cancellation, or doubled without an excuse', () => {
  const settings = [
    ...settingsWith(0),
    ...settingsWith(1),
    twoFaults,
    ...unlockedSettingsWith(0, 2),
    unlockedWithFault!,
    ...unlockedSettingsWith(1, 1).slice(1),
    ...scheduledSettingsWith(0).slice(0, 2),
    scheduled!,
    scheduledAlone!,
    scheduledSettingsWith(2)[2]!,
  ]
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
    'what an event follows is a set': 'nothing is overtaken',
    'order of claims': 'nothing is overtaken',
    'leases end': 'nothing is lost',
    'a cancellation is fenced against a claim': 'what is cancelled never goes out',
    'what was claimed once cannot be cancelled': 'what is cancelled never goes out',
    'a claim skips what is being cancelled': 'what is cancelled never goes out',
    'a scheduled event has a lane of its own': 'a scheduled event waits for none, and none for it',
  }
  const settings: Partial<Record<Rule, Setting>> = {
    'what an event follows is a set': unlocked!,
    'a cancellation is fenced against a claim': scheduledAlone!,
    'what was claimed once cannot be cancelled': scheduledAlone!,
    'a claim skips what is being cancelled': scheduledAlone!,
    'a scheduled event has a lane of its own': scheduled!,
  }
  it.each(RULES)('%s', TIMEOUT, (without) => {
    const lookFor = broken[without]
    const { counterexample } = explore({ ...(settings[without] ?? twoFaults), without, lookFor })
    expect(counterexample?.property).toBe(lookFor)
    expect(counterexample?.moves).not.toHaveLength(0)
  })
})
