// The dashboard as the guide mounts it in Next.
import { createOutbox } from 'aftercommit'
import { dashboard } from 'aftercommit/dashboard'
import { handlersPublisher } from 'aftercommit/handlers'
import { postgresJs } from 'aftercommit/postgres-js'
import postgres from 'postgres'

const outbox = createOutbox({
  db: postgresJs(postgres(process.env.DATABASE_URL)),
  publisher: handlersPublisher({ handlers: {} }),
  enabled: false,
})
const handler = dashboard(outbox, {
  basePath: '/admin/outbox',
  authorize: ({ headers }) => (headers.get('cookie') === 'who=ada' ? { mayAct: true } : null),
})

export const dynamic = 'force-dynamic'
export { handler as GET, handler as POST }
