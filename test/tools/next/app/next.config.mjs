// The package reads files beside its own.
export default { serverExternalPackages: ['aftercommit'], typescript: { ignoreBuildErrors: true } }
