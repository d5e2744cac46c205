// Reduces an error to its text with placeholders for what differs from one event to the next, so that a thousand
// failures of one cause are one group. Grouping and selecting use this one expression. Neither patterns nor placeholders
// contain a backslash, whose meaning in a literal depends on a setting of the server.
import { sql, type SQL } from '../../drivers/sql.ts'

/** A boiled-down error is cut after this many characters. */
const LONGEST = 300

/** After quoted texts are removed, which can be long, only this many characters are looked at: more would take time. */
const LOOKED_AT = 900

const WORD_BEGINS = '[[:<:]]'
const WORD_ENDS = '[[:>:]]'
const HEX = '[0-9a-f]'
const CLOCK = '[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?(z|utc|gmt|[+-][0-9]{2}:?[0-9]{2}))?'

/** Such as `900ms` and `1m30s`, which are short at times and long at others. */
const AMOUNT = `([0-9]+([kmg]?b|[mun]?s|[dhm]))+${WORD_ENDS}`

type Replaced = readonly [placeholder: string, pattern: string]

// An apostrophe inside a word opens nothing.
const QUOTED: Replaced = ['<text>', `(?<![[:alnum:]])("[^"]*"|'[^']*'|\`[^\`]*\`)`]

/** In this order, as what is left of a time would be numbers. Case is ignored. */
const OTHERS: readonly Replaced[] = [
  [
    '<time>',
    `${WORD_BEGINS}([0-9]{4}-[0-9]{2}-[0-9]{2}([t ]${CLOCK})?|[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?)${WORD_ENDS}`,
  ],
  [
    '<address>',
    [
      `${WORD_BEGINS}[a-z][a-z0-9+.-]*://[^[:space:]<>"')]+`,
      `[a-z0-9._+-]+@[a-z0-9-]+([.][a-z0-9-]+)+`,
      `${WORD_BEGINS}[0-9]{1,3}([.][0-9]{1,3}){3}(:[0-9]+)?${WORD_ENDS}`,
      `${WORD_BEGINS}(${HEX}{1,4}:+){2,7}${HEX}{1,4}${WORD_ENDS}`,
    ].join('|'),
  ],
  [
    '<id>',
    [
      `${WORD_BEGINS}${HEX}{8}(-${HEX}{4}){3}-${HEX}{12}${WORD_ENDS}`,
      `${WORD_BEGINS}0x${HEX}+${WORD_ENDS}`,
      // Hashes and other ids: both letters and digits, or it is a word or a number. A short one is of hex digits, or changes
      // more than once between letters and digits: `sha256` and `worker7` are names.
      `${WORD_BEGINS}(?=[a-z]*[0-9])(?=[0-9]*[a-z])(?!${AMOUNT})(${HEX}{5,}|[0-9a-z]{16,}|(?=[0-9a-z]{5})([0-9]+[a-z]+[0-9]|[a-z]+[0-9]+[a-z])[0-9a-z]*)${WORD_ENDS}`,
    ].join('|'),
  ],
  ['<number>', `[0-9]+([.,][0-9]+)*`],
  [' ', `[[:space:]]+`],
]

/** The expression, for the error in a column or a parameter. */
export function boiledDown(error: SQL): SQL {
  const unquoted = cut(replace(sql`coalesce(${error}, '')`, QUOTED), LOOKED_AT)
  // Cut again at the end, so that numbers of different lengths do not cut the text at different places.
  return cut(sql`btrim(${OTHERS.reduce(replace, unquoted)})`, LONGEST)
}

/**
 * Whether what was recorded boils down to the same as `error`, which is a whole error, or the text of a group. That one has
 * placeholders and is compared as it is: boiled down again, it could be the text of another group.
 */
export function isError(recorded: SQL, error: string): SQL {
  const given = sql`${error}::text`
  const isBoiled = [QUOTED, ...OTHERS].some(([name]) => name !== ' ' && error.includes(name))
  return sql`${boiledDown(recorded)} = ${isBoiled ? given : sql`(select ${boiledDown(given)})`}`
}

function replace(text: SQL, [placeholder, pattern]: Replaced): SQL {
  return sql`regexp_replace(${text}, ${literal(pattern)}, ${literal(placeholder)}, 'gi')`
}

function cut(text: SQL, length: number): SQL {
  return sql`left(${text}, ${sql.raw(String(length))})`
}

function literal(text: string): SQL {
  return sql.raw(`'${text.replaceAll("'", "''")}'`)
}
