import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance } from 'fastify';
import { registerHeads, sendChunks } from './streamed-response.ts';

const chunk = Buffer.alloc(64 * 1024, 'x');
let app: FastifyInstance;
let read: number;
let ended: Promise<unknown>;

function serve(failure?: Error): FastifyInstance {
  const { promise, resolve } = Promise.withResolvers<void>();
  ended = promise;
  read = 0;
  app = Fastify();
  registerHeads(app);
  app.get('/', (_request, reply) => {
    async function* chunks(): AsyncGenerator<Buffer> {
      try {
        for (; read < 1_000; read++) {
          if (failure && read > 0) throw failure;
          yield chunk;
        }
      } finally {
        resolve();
      }
    }
    return sendChunks(reply, chunks());
  });
  return app;
}
afterEach(() => app.close());

test('HEAD reads no more than what tells an error from a response', async () => {
  const response = await serve().inject({ method: 'HEAD', url: '/' });
  expect([response.statusCode, response.headers['content-type'], response.body]).toEqual([
    200,
    'application/json; charset=utf-8',
    '',
  ]);
  expect(response.headers['content-length']).toBeUndefined();
  await ended;
  expect(read).toBe(0);
});

test.each(['1.0', '1.1'])('a client over HTTP/%s sees that a response has broken off', async (httpVersion) => {
  await serve(new Error('the database is gone')).listen({ port: 0, host: '127.0.0.1' });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  const failed = new Promise<string>((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    socket.on('end', () => resolve('end'));
  });
  socket.write(`GET / HTTP/${httpVersion}\r\nHost: x\r\n\r\n`);
  const outcome = await failed;
  // Over HTTP/1.1, the last chunk is missing.
  if (httpVersion === '1.0') expect(outcome).toBe('ECONNRESET');
  else expect(received).not.toMatch(/0\r\n\r\n$/);
  if (!socket.closed) await once(socket, 'close');
});
