// Text that fits the terminal. A pipe or a file has no width, and gets long lines as they are.

/** Breaks the text between words. Every line but the first begins with `indent` spaces; the first has them before it. */
export function wrap(text: string, width: number, indent: number): string {
  const room = Math.max(20, width - indent)
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!
    if (line === '') lines[lines.length - 1] = word
    else if (line.length + 1 + word.length <= room) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines.join(`\n${' '.repeat(indent)}`)
}

/** The line, cut at the width. */
export function cut(line: string, width: number): string {
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`
}
