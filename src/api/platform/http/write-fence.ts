import type { FastifyInstance } from 'fastify';
import type { WriteFence } from '../../../shared/platform/claim/data-dir-claim.ts';

/**
 * Acknowledges no write once the data belong to another server. Looks after the write was committed: what was committed before the
 * other server took over is in the data that it reads.
 */
export function registerWriteFence(app: FastifyInstance, fence: WriteFence): void {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isWrite = request.method !== 'GET' && request.method !== 'HEAD';
    // Without an answer the client knows nothing, which is true.
    if (isWrite && !fence.holds()) reply.raw.destroy();
    done();
  });
}
