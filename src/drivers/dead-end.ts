// What a transaction returns after its end, where a builder or a query is expected. Every property and every call leads
// back to it, and awaiting it rejects. An error that was thrown instead would pass by the caller's catch(), and a rejected
// promise that is not awaited would end the process.

export function deadEnd(reason: unknown): unknown {
  const asPromise = new Set<string | symbol>(['then', 'catch', 'finally'])
  const end: unknown = new Proxy(() => {}, {
    get(_, property) {
      if (typeof property === 'symbol') return undefined
      if (!asPromise.has(property)) return end
      return (...given: unknown[]) => {
        const rejected = Promise.reject(reason)
        return Reflect.apply(rejected[property as 'then'], rejected, given) as unknown
      }
    },
    apply: () => end,
  })
  return end
}
