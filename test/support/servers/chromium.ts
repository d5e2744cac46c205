// A real browser, the one of the machine: Debian's chromium, driven by playwright-core, which brings none of its own.
import { access, constants } from 'node:fs/promises'
import { type Browser, chromium } from 'playwright-core'
import { isContinuousIntegration } from '../run/continuous-integration.ts'

const PROGRAM = '/usr/bin/chromium'
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Why there is no browser; on CI that is a failure, so that a green run never means "not tested". */
export async function explainMissingChromium(): Promise<string | null> {
  const missing = await access(PROGRAM, constants.X_OK).then(
    () => null,
    () => `${PROGRAM} is not installed (apt-get install chromium)`,
  )
  if (missing && isContinuousIntegration()) throw new Error(missing)
  return missing
}

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: PROGRAM, args: ARGUMENTS })
}
