// Makes a screenshot small: 256 of a page's few thousand colours are enough, and a PNG with a palette is a third of one
// without.
import { crc32, deflateSync, inflateSync } from 'node:zlib'

const COLOURS = 256

export function toPalettePng(png: Buffer): Buffer {
  const { width, height, pixels } = decode(png)
  const colourOf = (at: number) => (pixels[at]! << 16) | (pixels[at + 1]! << 8) | pixels[at + 2]!
  const counts = new Map<number, number>()
  for (let at = 0; at < pixels.length; at += 3) {
    const colour = colourOf(at)
    counts.set(colour, (counts.get(colour) ?? 0) + 1)
  }
  const palette = choosePalette(counts)
  const indexes = new Map([...counts.keys()].map((colour) => [colour, nearest(palette, colour)]))
  const rows = Buffer.alloc(height * (width + 1))
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      const index = indexes.get(colourOf((row * width + column) * 3))!
      rows[row * (width + 1) + 1 + column] = index
    }
  }
  return encode(width, height, palette, rows)
}

/** One after the other, that colour whose absence would be seen most: far from what is chosen, and frequent. */
function choosePalette(counts: ReadonlyMap<number, number>): number[] {
  const missing = [...counts].map(([colour, count]) => ({ colour, count, far: 255 ** 2 * 3 }))
  const palette: number[] = []
  while (palette.length < Math.min(COLOURS, missing.length)) {
    const next = missing.reduce((a, b) => (b.far * b.count > a.far * a.count ? b : a)).colour
    palette.push(next)
    for (const one of missing) one.far = Math.min(one.far, distance(one.colour, next))
  }
  return palette
}

function nearest(palette: readonly number[], colour: number): number {
  const distances = palette.map((candidate) => distance(candidate, colour))
  return distances.indexOf(Math.min(...distances))
}

function distance(one: number, other: number): number {
  const red = (one >> 16) - (other >> 16)
  const green = ((one >> 8) & 255) - ((other >> 8) & 255)
  const blue = (one & 255) - (other & 255)
  return red * red + green * green + blue * blue
}

/** A PNG as Chromium writes it: eight bits for each of red, green and blue, not interlaced. */
function decode(png: Buffer): { width: number; height: number; pixels: Buffer } {
  const data: Buffer[] = []
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    const type = png.toString('latin1', at + 4, at + 8)
    if (type === 'IDAT') data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  }
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  if (png[24] !== 8 || png[25] !== 2) throw new Error('not an RGB PNG of eight bits')
  const raw = inflateSync(Buffer.concat(data))
  const stride = width * 3
  const pixels = Buffer.alloc(stride * height)
  for (let row = 0; row < height; row += 1) {
    const filter = raw[row * (stride + 1)]!
    for (let byte = 0; byte < stride; byte += 1) {
      const at = row * stride + byte
      const left = byte < 3 ? 0 : pixels[at - 3]!
      const up = row === 0 ? 0 : pixels[at - stride]!
      const corner = row === 0 || byte < 3 ? 0 : pixels[at - stride - 3]!
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter]!
      pixels[at] = raw[row * (stride + 1) + 1 + byte]! + guess
    }
  }
  return { width, height, pixels }
}

function paeth(left: number, up: number, corner: number): number {
  const [a, b, c] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs)
  return a! <= b! && a! <= c! ? left : b! <= c! ? up : corner
}

function encode(width: number, height: number, palette: readonly number[], rows: Buffer): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8)
  const colours = palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255])
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(colours)),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}
