// How commands say that the name of a topic may be mistyped.
import { printable } from './output/table.ts'

/** After the name of the topic, in a question. */
export const OF_UNKNOWN =
  ', a topic that no waiting or recent event is for and no running instance names'

export function unknownTopicNote(topic: string): string {
  return `no waiting or recent event is for the topic '${printable(topic)}', and no running instance names it; check the spelling`
}
