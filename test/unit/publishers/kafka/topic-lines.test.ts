import { expect, it } from 'vitest'
import { TopicLines } from '../../../../src/publishers/kafka/topic-lines.ts'

function setUp() {
  const opened: { closed: boolean }[] = []
  const lines = new TopicLines(() => {
    const producer = { closed: false }
    opened.push(producer)
    return {
      producer,
      connect: async () => {},
      disconnect: async () => {
        producer.closed = true
      },
    }
  })
  return { lines, opened }
}

it('gives each of sixteen topics a producer of its own, and lets the others share them', async () => {
  const { lines, opened } = setUp()
  await lines.connect()
  for (let n = 0; n < 40; n += 1) await lines.of(`topic-${n}`).use(async () => {})
  expect(opened).toHaveLength(16)
  expect(lines.of('topic-16')).toBe(lines.of('topic-0'))
  expect(lines.of('topic-1')).not.toBe(lines.of('topic-0'))
  await lines.disconnect()
  expect(opened.every(({ closed }) => closed)).toBe(true)
})

it('replaces the producer that failed, not the one that came after it', async () => {
  const { lines, opened } = setUp()
  const ofTopic = lines.of('a')
  let distrustFirst = () => {}
  await ofTopic.use(async (_, distrust) => {
    distrustFirst = distrust
  })
  distrustFirst()
  await ofTopic.use(async () => {})
  distrustFirst()
  await ofTopic.use(async () => {})
  expect(opened).toHaveLength(2)
})

it('shows a send that its producers were closed meanwhile', async () => {
  const { lines } = setUp()
  const { closings } = lines.of('a')
  await lines.disconnect()
  expect(lines.of('a').closings).not.toBe(closings)
})
