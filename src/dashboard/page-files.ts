// The files of the page, which the build puts beside this one. Read once, kept in memory, and the same for everyone:
// they hold no data, so they need no permission.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { RefusedError } from './refusal.ts'
import { SAFE_HEADERS } from './responses.ts'

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
}

// In a variable, so that a bundler does not take the folder for a module.
const here = import.meta.url
const FOLDER = new URL(here.endsWith('.ts') ? '../../dist/dashboard/page/' : './page/', here)

interface PageFile {
  readonly type: string
  readonly etag: string
  readonly bytes: Uint8Array
  readonly gzipped: Uint8Array
}

export class PageFiles {
  readonly #basePath: string
  readonly #folder: URL
  #files: Promise<ReadonlyMap<string, PageFile>> | null = null

  constructor(basePath: string, folder = FOLDER) {
    this.#basePath = basePath
    this.#folder = folder
  }

  /** `name`: below the base path. What has no ending is a view of the page. */
  async serve(name: string, { method, headers }: Request): Promise<Response> {
    if (method !== 'GET' && method !== 'HEAD') {
      throw new RefusedError(405, 'METHOD', `${method} is not allowed at this address`)
    }
    const files = await this.#read()
    const file = files.get(name.includes('.') ? name : 'index.html')
    if (!file) throw new RefusedError(404, 'NOT_FOUND', 'there is no such address')
    const isGzipped = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
    const sent = {
      ...SAFE_HEADERS,
      'content-type': file.type,
      'cache-control': 'no-cache',
      etag: file.etag,
      vary: 'accept-encoding',
    }
    if (headers.get('if-none-match') === file.etag) {
      return new Response(null, { status: 304, headers: sent })
    }
    const body = method === 'HEAD' ? null : isGzipped ? file.gzipped : file.bytes
    return new Response(body, {
      headers: { ...sent, ...(isGzipped && { 'content-encoding': 'gzip' }) },
    })
  }

  // What could not be read is tried again with the next request.
  #read(): Promise<ReadonlyMap<string, PageFile>> {
    return (this.#files ??= readFiles(this.#folder, this.#basePath).catch((cause: unknown) => {
      this.#files = null
      throw new RefusedError(
        404,
        'PAGE_MISSING',
        `the files of the page are missing (${(cause as { code?: string }).code ?? 'unreadable'}); keep aftercommit out of your bundles`,
      )
    }))
  }
}

async function readFiles(folder: URL, basePath: string): Promise<ReadonlyMap<string, PageFile>> {
  const names = (await readdir(folder)).filter((name) => TYPES[endingOf(name)] !== undefined)
  const files = names.map(async (name): Promise<[string, PageFile]> => {
    const read = await readFile(new URL(name, folder))
    const bytes =
      endingOf(name) === 'html'
        ? Buffer.from(read.toString('utf8').replaceAll('__BASE__', basePath))
        : read
    const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
    const gzipped = await promisify(gzip)(bytes)
    return [name, { type: TYPES[endingOf(name)]!, etag: `"${digest}"`, bytes, gzipped }]
  })
  return new Map(await Promise.all(files))
}

function endingOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}
