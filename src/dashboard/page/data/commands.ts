// Commands inside a sentence of the doctor, so that they can be copied without the words around them.

const COMMAND =
  /(`[^`]+`|\baftercommit (?:migrate|relay|purge|doctor|retry|discard|reroute|resume|pause|status|groups|list|show)\b(?: (?:--[\w-]+|\d\w*|'[^']*'|<[^>]+>|(?:pending|failed|dead_letter)\b))*|\bselect pg_\w+\((?:'[^']*'|\d+)?\)|\balter system set \w+ = \w+|\bgrant [\w, ]+ on .+ to \S+|\breindex (?:index|table) concurrently \S+|\balter table \S+ reset \(\w+\)|\bvacuum (?:\(analyze\)|full) \S+)/

export interface Piece {
  readonly text: string
  readonly isCommand: boolean
}

export function splitCommands(sentence: string): Piece[] {
  return sentence
    .split(COMMAND)
    .map((text, index) => ({ text: text.replaceAll('`', ''), isCommand: index % 2 === 1 }))
    .filter(({ text }) => text !== '')
}
