// postgres.js queries the array types of the database on each connection that it opens. If the connection dies meanwhile,
// that query rejects where no code can catch it, and the process ends. The result is kept for the whole client, so one
// connection is enough: once a query has succeeded, new connections need not ask again.

export function keepArrayTypes(client: unknown): void {
  const { options } = (client ?? {}) as { options?: { fetch_types?: boolean } }
  if (options?.fetch_types === true) options.fetch_types = false
}
