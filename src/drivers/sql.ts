// A statement in pieces, so that the store writes SQL without any driver's or query builder's template: values
// become parameters, a statement inside a statement becomes part of it, and each driver says it in its own way.

export class SQL {
  /** One more than there are values: the text before, between and after them. */
  readonly texts: readonly string[]
  readonly values: readonly unknown[]

  constructor(texts: readonly string[], values: readonly unknown[]) {
    this.texts = texts
    this.values = values
  }

  /** As Postgres takes it, with $1, $2 and so on where the values go. */
  get text(): string {
    return this.texts.reduce((before, text, n) => `${before}$${n}${text}`)
  }
}

export function sql(strings: TemplateStringsArray, ...given: readonly unknown[]): SQL {
  const texts = [strings[0]!]
  const values: unknown[] = []
  const append = (text: string) => texts.push(texts.pop()! + text)
  for (const [n, value] of given.entries()) {
    if (value instanceof SQL) {
      append(value.texts[0]!)
      texts.push(...value.texts.slice(1))
      values.push(...value.values)
      append(strings[n + 1]!)
    } else {
      values.push(value)
      texts.push(strings[n + 1]!)
    }
  }
  return new SQL(texts, values)
}

/** Text that is SQL itself: a quoted name, or one of our own constants. Never anything that was given to us. */
sql.raw = (text: string) => new SQL([text], [])

sql.join = (parts: readonly SQL[], separator: SQL): SQL =>
  parts.reduce((joined, part) => sql`${joined}${separator}${part}`)
