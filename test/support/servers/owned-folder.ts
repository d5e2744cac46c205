// A temporary folder that cannot outlive the process that made it. A guardian, a small shell in its
// own session, waits for the pipe to its owner to close; the kernel closes it however the owner ends:
// a normal stop, Ctrl-C (on which vitest exits before any asynchronous cleanup could run) or kill -9.
// The guardian then ends the process recorded last and deletes the folder.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** CONT ends nothing: it leaves five seconds to finish, before what is left is killed. */
export type EndSignal = 'QUIT' | 'TERM' | 'KILL' | 'CONT'

export type OwnedFolder = {
  readonly path: string
  /** Records the process group to end if the owner dies; replaces the one recorded before. */
  record(pid: number, signal: EndSignal): void
  /** Forgets it, so that a reused pid is never signalled. */
  forget(): void
  /** Ends what is still recorded and deletes the folder. */
  remove(): Promise<void>
}

// A dead child of a dead owner may stay a zombie where process 1 does not reap, so `kill -0` would
// wait for ever. A process that is still dying may write between two deletions, hence the attempts.
const guardian = `
signal= pid=
while read -r signal pid; do lastSignal=$signal; lastPid=$pid; done
if [ -n "$lastPid" ]; then
  kill -s "$lastSignal" -- "-$lastPid"
  tries=0
  while [ $tries -lt 100 ]; do
    case "$(ps -o stat= -p "$lastPid")" in ''|Z*) break ;; esac
    sleep 0.05
    tries=$((tries + 1))
  done
  kill -s KILL -- "-$lastPid"
fi
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf "$1" && [ ! -e "$1" ] && exit 0
  sleep 0.1
done
exit 1
`

export async function createOwnedFolder(prefix: string, parent = tmpdir()): Promise<OwnedFolder> {
  return ownFolder(await mkdtemp(join(parent, prefix)))
}

/** Takes over a folder that somebody else makes; it is deleted when this process ends. */
export async function ownFolder(path: string): Promise<OwnedFolder> {
  const shell = spawn('sh', ['-c', guardian, 'guardian', path], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const exited = once(shell, 'exit')
  await once(shell, 'spawn')
  shell.unref()
  // The guardian may only be gone already when somebody killed it; the next remove() says so.
  shell.stdin.on('error', () => {})

  return {
    path,
    record(pid, signal) {
      shell.stdin.write(`${signal} ${pid}\n`)
    },
    forget() {
      shell.stdin.write('\n')
    },
    async remove() {
      shell.ref()
      shell.stdin.end()
      await exited
      if (shell.exitCode !== 0) {
        throw new Error(`${path} could not be deleted; delete it by hand`)
      }
    },
  }
}
