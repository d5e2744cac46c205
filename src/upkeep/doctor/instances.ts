// The instances that run on the table: whether any was lost, and whether all have the same settings.
import { groupBy } from '../../runtime/group-by.ts'
import type { Instance } from '../../store/outbox/control-store.ts'
import { splitBySeen } from '../seen-instances.ts'
import { isShownOnly } from '../shared-settings.ts'
import type { Check, Found } from './finding.ts'
import { judgeLost } from './lost-instances.ts'

export const instancesCheck: Check = {
  name: 'instances',
  async run({ store }) {
    const instances = await store.control.instances()
    const [running, lost] = splitBySeen(instances)
    return [
      ...judgeLost(lost, running),
      ...differentSettings(running),
      ...differentVersions(running),
    ]
  },
}

function differentSettings(instances: readonly Instance[]): Found[] {
  const names = new Set(instances.flatMap(({ settings }) => Object.keys(settings)))
  return [...names]
    .filter((name) => !isShownOnly(name))
    .toSorted()
    .flatMap((name) => {
      const byValue = groupBy(instances, ({ settings }) => JSON.stringify(settings[name] ?? null))
      if (byValue.size < 2) return []
      const values = [...byValue].map(([value, having]) => {
        return `${value} in ${having.map(({ workerId }) => workerId).join(', ')}`
      })
      return {
        severity: 'warning',
        message: `running instances differ in the setting ${name}: ${values.join('; ')}`,
        remedy:
          'give all instances on this table the same setting; during a deployment this is normal',
      }
    })
}

function differentVersions(instances: readonly Instance[]): Found[] {
  const versions = [...new Set(instances.map(({ version }) => version))].toSorted()
  if (versions.length < 2) return []
  const message = `running instances have different versions of aftercommit: ${versions.join(', ')}`
  return [{ severity: 'info', message, remedy: 'this is normal while a deployment is under way' }]
}
