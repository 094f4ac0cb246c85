/**
 * A worker that closes its channel when it receives a message, and takes a while to end: nothing more can be sent
 * to it.
 */
process.once('message', () => process.disconnect())
process.on('exit', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200))
process.send({ type: 'ready', gatewayUrl: '', grpcAddress: null, upstreamUrl: '' })
