// Ends a test worker when the vitest process that started it is gone, so that a killed run leaves no
// worker behind that would go on until its tests time out. (vitest replaces process.exit in workers.)
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
