// Where each page stands: by what its reader wants to do. A page that is named nowhere stands under "More"; one that is named
// and does not exist fails the build.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { DefaultTheme } from 'vitepress'

const docs = new URL('../', import.meta.url)

type Pages = Record<string, string>

const START: Pages = {
  'getting-started': 'Getting started',
  'getting-started/databases': 'By database client',
  'getting-started/frameworks': 'By framework',
  guarantees: 'What you can rely on',
  comparison: 'Compared with others',
}

const GUIDES: Record<string, Pages> = {
  'Emit events': {
    'guides/your-transactions': 'Transactions that you begin',
    'guides/typed-events': 'Typed events',
    'guides/payloads': 'Payloads',
    'guides/sensitive-data': 'Sensitive and large payloads',
    'guides/scheduled-events': 'Scheduled events',
    'guides/testing': 'Testing',
  },
  'Choose a client': {
    'guides/drivers': 'Database drivers',
    'guides/orms': 'ORMs and query builders',
    'guides/nestjs': 'NestJS',
    'guides/serverless': 'Serverless',
  },
  'Send them': {
    'guides/kafka': 'Kafka',
    'guides/rabbitmq': 'RabbitMQ',
    'guides/handlers': 'Handlers',
    'guides/routing': 'Routing',
    'guides/envelopes': 'Envelopes',
    'guides/cdc': 'Debezium as the relay',
    'guides/publishers': 'Writing a publisher',
  },
  'Rely on them': {
    'guides/threshold': 'The threshold',
    'guides/order': 'Order',
    'guides/outages': 'Outages',
    'guides/dead-letters': 'Dead letters',
    'guides/inbox': 'The inbox',
  },
}

const RUN: Pages = {
  operations: 'Operations',
  runbook: 'Runbook',
  'guides/dashboard': 'The dashboard',
  'guides/telemetry': 'Traces and metrics',
  'guides/migrations': 'Migrations',
  'guides/roles': 'Roles and rights',
  'guides/fail-over': 'Fail-over of Postgres',
  'guides/scaling': 'Scaling',
  'guides/many-tenants': 'Many tenants',
}

const REFERENCE: Pages = {
  'reference/outbox': 'The outbox',
  'reference/options': 'Options',
  'reference/events': 'Lifecycle events',
  'reference/errors': 'Errors',
  'reference/metrics': 'Metrics',
  'reference/cli': 'The command line',
  'reference/inbox': 'The inbox',
  'reference/schema': 'The tables',
  glossary: 'Glossary',
}

const CHANGE: Pages = {
  architecture: 'Architecture',
  'internals/leases': 'The lease in depth',
  'internals/inbox': 'The inbox in depth',
  'internals/drivers': 'Drivers and stores',
  'internals/traps': 'Traps in the dependencies',
  'internals/speed': 'Speed',
  'internals/proof': 'Proof',
}

const PROOF: Pages = {
  reliability: 'Reliability',
  benchmarks: 'Benchmarks',
}

const decisions = titlesIn('decisions', /^\d{4}-/)
const named = [START, ...Object.values(GUIDES), RUN, REFERENCE].flatMap(Object.keys)
const more = Object.fromEntries(
  ['guides', 'reference', 'getting-started']
    .flatMap((folder) => Object.entries(titlesIn(folder, /./)))
    .filter(([page]) => !named.includes(page)),
)

export const nav: DefaultTheme.NavItem[] = [
  {
    text: 'Start',
    link: '/getting-started',
    activeMatch: '^/(getting-started|guarantees|comparison)',
  },
  { text: 'Guides', link: '/guides/your-transactions', activeMatch: '^/guides/' },
  { text: 'Run it', link: '/operations', activeMatch: '^/(operations|runbook)' },
  { text: 'Reference', link: '/reference/options', activeMatch: '^/(reference/|glossary)' },
  {
    text: 'How it works',
    link: '/architecture',
    activeMatch: '^/(architecture|internals/|decisions/)',
  },
  { text: 'Proof', link: '/reliability', activeMatch: '^/(reliability|benchmarks)' },
]

export const sidebar: DefaultTheme.SidebarItem[] = [
  group('Start', START),
  ...Object.entries(GUIDES).map(([title, pages]) => group(title, pages)),
  group('Run it', RUN),
  group('Reference', REFERENCE, true),
  {
    ...group('How it works', CHANGE, true),
    items: [
      ...itemsOf(CHANGE),
      {
        text: 'Decisions',
        link: '/decisions/',
        collapsed: true,
        items: itemsOf(decisions),
      },
    ],
  },
  group('Proof', PROOF),
  ...(Object.keys(more).length > 0 ? [group('More', more)] : []),
]

function group(text: string, pages: Pages, collapsed = false): DefaultTheme.SidebarItem {
  return { text, collapsed, items: itemsOf(pages) }
}

function itemsOf(pages: Pages): DefaultTheme.SidebarItem[] {
  return Object.entries(pages).map(([page, text]) => {
    if (!existsSync(new URL(`${page}.md`, docs))) throw new Error(`docs/${page}.md does not exist`)
    return { text, link: `/${page}` }
  })
}

/** The first heading of each page of a folder, without the number of a decision. */
function titlesIn(folder: string, pattern: RegExp): Pages {
  const files = readdirSync(new URL(`${folder}/`, docs)).filter((file) => file.endsWith('.md'))
  return Object.fromEntries(
    files
      .filter((file) => pattern.test(file))
      .toSorted()
      .map((file) => {
        const text = readFileSync(new URL(`${folder}/${file}`, docs), 'utf8')
        const [, title] = /^# (?:\d+\. )?(.*)$/m.exec(text)!
        return [`${folder}/${file.slice(0, -3)}`, title!.replaceAll('`', '')]
      }),
  )
}
