// Jest below Node 24.9, as docs/guides/testing.md has it.
module.exports = {
  testMatch: ['**/testing.jest.cjs'],
  transform: { '/node_modules/.+\\.js$': '@swc/jest' },
  transformIgnorePatterns: ['/node_modules/(?!(aftercommit|leven|uuid)/)'],
}
