// npm run failover: Postgres dies under load and its standby takes over, as often as asked. The last line is one JSON object.
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { parseFailOverArguments, USAGE } from './arguments.ts'
import { failOverUnderLoad, isGood } from './fail-over.ts'

await runToVerdict({
  usage: USAGE,
  parse: parseFailOverArguments,
  run: async (args) => ({ ...args, ...(await failOverUnderLoad(args, { closeLater, say })) }),
  isGood,
})
