#!/usr/bin/env node
// The executable. It ends the process itself, because a config file may have opened connections of its own.
import { readFileSync } from 'node:fs'
import { runCli } from './run-cli.ts'

const { version } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string }

// `aftercommit list | head`: there is no one left to print for. A relay should have gone on, so a supervisor starts it again.
const goesOn = process.argv.includes('relay')
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' && !goesOn ? 0 : 1)
})

const { env, stdin, stdout, stderr } = process
const exitCode = await runCli(process.argv.slice(2), { env, version, stdin, stdout, stderr })
// Pipes may not have taken everything yet.
await Promise.all([stdout, stderr].map((stream) => new Promise((done) => stream.write('', done))))
process.exit(exitCode)
