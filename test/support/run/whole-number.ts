// A whole number that somebody typed as an argument.

export function requireWhole(name: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new Error(`--${name} must be a whole number from ${min} to ${max}, got '${text}'`)
}
