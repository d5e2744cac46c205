// A statement in pieces, so that the store writes SQL without the template of any driver or query builder. Values
// become parameters, a nested statement becomes part of the outer one, and each driver runs the result in its own way.

/** A statement as a driver runs it. */
export interface Statement {
  /** With $1, $2 and so on in place of the values. */
  readonly text: string
  readonly values: readonly unknown[]
}

export class SQL implements Statement {
  /** The text before, between and after the values: one more than there are values. */
  readonly texts: readonly string[]
  readonly values: readonly unknown[]

  constructor(texts: readonly string[], values: readonly unknown[]) {
    this.texts = texts
    this.values = values
  }

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

/** Literal SQL: a quoted name, or one of our own constants. Never a value from outside. */
sql.raw = (text: string) => new SQL([text], [])

sql.join = (parts: readonly SQL[], separator: SQL): SQL =>
  parts.reduce((joined, part) => sql`${joined}${separator}${part}`)
