// A logger that keeps its lines for the test.
import type { Logger } from '../../../src/index.ts'

type Line = {
  readonly level: keyof Logger
  readonly fields: object
  readonly message: string
}

export type RecordingLogger = Logger & { readonly lines: Line[] }

export function recordingLogger(): RecordingLogger {
  const lines: Line[] = []
  const record = (level: keyof Logger) => (fields: object, message: string) => {
    lines.push({ level, fields, message })
  }
  return {
    lines,
    debug: record('debug'),
    info: record('info'),
    warn: record('warn'),
    error: record('error'),
  }
}
