// Jest from Node 24.9 on, which needs nothing but --experimental-vm-modules.
module.exports = { testMatch: ['**/testing.jest.cjs'], transform: {} }
