// The frame around a long run that judges itself: arguments, progress on stderr, one JSON object as the last
// line on stdout, and whatever was opened closed in reverse order, be it at the end, after an error or on
// Ctrl-C. Exit code 0 if the verdict is good, 1 if not, 2 for arguments that cannot be read; --help says which can.

export interface Run<TArguments, TResult> {
  readonly usage: string
  readonly parse: (args: readonly string[]) => TArguments
  readonly run: (args: TArguments) => Promise<TResult>
  readonly isGood: (result: TResult, args: TArguments) => boolean
}

const INTERRUPTED = 130

const closers: (() => Promise<unknown>)[] = []

/** Closes this too, before all that was named earlier. */
export function closeLater(close: () => Promise<unknown>): void {
  closers.push(close)
}

export function say(text: string): void {
  console.error(`${(performance.now() / 1_000).toFixed(0)}s  ${text}`)
}

export async function runToVerdict<TArguments, TResult>({
  usage,
  parse,
  run,
  isGood,
}: Run<TArguments, TResult>): Promise<void> {
  let interrupted = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      interrupted = true
      void closeAll().finally(() => process.exit(INTERRUPTED))
    })
  }
  const given = readArguments(parse, usage)
  try {
    const result = await run(given)
    await closeAll()
    console.log(JSON.stringify(result))
    process.exitCode = isGood(result, given) ? 0 : 1
  } catch (error) {
    // What is closed under a run makes it fail; that is no news.
    if (interrupted) return
    console.error(error)
    await closeAll()
    process.exitCode = 1
  }
}

function readArguments<TArguments>(
  parse: (args: readonly string[]) => TArguments,
  usage: string,
): TArguments {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    console.log(usage)
    process.exit()
  }
  try {
    return parse(args)
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}

async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close().catch(() => {})
}
