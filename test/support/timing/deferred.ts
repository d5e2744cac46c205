// A promise with its handles, for tests that decide when something goes on.

export type Deferred<T> = {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
}

export function defer<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
