// Every entrance from CommonJS, which Node can require() because no module of the package awaits at its top level.
const assert = require('node:assert/strict')
const { exports: entrances } = require('aftercommit/package.json')

const warnings = []
process.on('warning', ({ message }) => warnings.push(message))
for (const entrance of Object.keys(entrances)) {
  const names = Object.keys(require(`aftercommit${entrance.slice(1)}`))
  assert.ok(names.length > 0, entrance)
}
setImmediate(() => {
  assert.deepEqual(warnings, [])
  console.log(`${Object.keys(entrances).length} entrances from CommonJS on Node ${process.version}`)
})
