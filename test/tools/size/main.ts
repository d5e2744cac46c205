// npm run check:size: what each subpath weighs in a bundle, with all that it imports and without its peers, and what the
// dashboard's page weighs compressed, as browsers get it. Exit code 1 if one is past its limit, or has none. Run after the build.
import { readdir, readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/**
 * In kB, minified: a little more than each weighs today, so that added weight is noticed. A third of the root is SQL
 * (store/), a sixth the path after COMMIT (delivery/), another sixth its dependencies, of which croner is the largest. Why the
 * root is in one piece: docs/decisions/0018-weight-of-the-root.md.
 */
const LIMITS: Readonly<Record<string, number>> = {
  '.': 228,
  './schema': 4,
  './postgres-js': 7,
  './node-postgres': 6,
  './kysely': 7,
  './knex': 7,
  './typeorm': 7,
  './prisma': 9,
  './driver-conformance': 6,
  './kafka': 25,
  './platformatic-kafka': 26,
  './rabbitmq': 20,
  './publisher-conformance': 6,
  './cdc': 7,
  './handlers': 18,
  './inbox': 82,
  './otel': 17,
  './prometheus': 10,
  './dashboard': 146,
  './config': 1,
  './testing': 17,
  './nestjs': 234,
}

/** In kB, all files of the page together, compressed. */
const PAGE_LIMIT = 64

interface Package {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

const root = new URL('../../../', import.meta.url)
const { exports, peerDependencies } = JSON.parse(
  await readFile(new URL('package.json', root), 'utf8'),
) as Package

async function weigh(entry: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    absWorkingDir: root.pathname,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    external: Object.keys(peerDependencies),
    write: false,
    logLevel: 'error',
  })
  return outputFiles[0]!.contents
}

const kB = (bytes: number) => (bytes / 1_000).toFixed(1).padStart(8)
let isGood = true
console.log(`${'kB'.padEnd(24)}minified    gzip   limit`)
for (const [subpath, file] of Object.entries(exports)) {
  if (typeof file === 'string') continue
  const bundle = await weigh(file.default)
  const limit = LIMITS[subpath]
  const isLight = limit !== undefined && bundle.length <= limit * 1_000
  isGood &&= isLight
  const columns = `${kB(bundle.length)}${kB(gzipSync(bundle).length)}${String(limit ?? '').padStart(8)}`
  const complaint = limit === undefined ? '  has no limit yet' : '  too heavy'
  console.log(`${subpath.padEnd(24)}${columns}${isLight ? '' : complaint}`)
}

const page = new URL('dist/dashboard/page/', root)
const files = await Promise.all(
  (await readdir(page)).map(async (name) => await readFile(new URL(name, page))),
)
const whole = files.reduce((sum, file) => sum + file.length, 0)
const compressed = files.reduce((sum, file) => sum + gzipSync(file).length, 0)
const isPageLight = files.length > 0 && compressed <= PAGE_LIMIT * 1_000
isGood &&= isPageLight
const columns = `${kB(whole)}${kB(compressed)}${`${PAGE_LIMIT} gzip`.padStart(13)}`
console.log(`${'page of the dashboard'.padEnd(24)}${columns}${isPageLight ? '' : '  too heavy'}`)

if (!isGood) {
  console.error(
    'set or raise the limit in test/tools/size/main.ts if the weight is worth it, or declare the client as a peer',
  )
  process.exitCode = 1
}
