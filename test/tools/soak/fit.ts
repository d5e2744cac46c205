// The straight line through some points, by least squares.

export interface Point {
  readonly x: number
  readonly y: number
}

/** By how much y grows per unit of x; 0 where the points have no direction. */
export function fitSlope(points: readonly Point[]): number {
  const meanX = mean(points.map(({ x }) => x))
  const meanY = mean(points.map(({ y }) => y))
  const spread = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
  const common = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0)
  return spread === 0 ? 0 : common / spread
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}
