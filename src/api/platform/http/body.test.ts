import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from '@jest/globals';
import { arrivedBody } from './body.ts';

test('a body that comes with its headers is taken at once, and the connection serves the next request', async () => {
  const taken: (string | undefined)[] = [];
  const isComplete: boolean[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    // As in the app, hooks run before the body is read.
    await null;
    taken.push(arrivedBody(request, Number(request.headers['content-length']))?.toString());
    setImmediate(() => {
      isComplete.push(request.complete);
      response.end();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    for (const body of ['first', 'second', 'cut']) {
      client.write(`PATCH / HTTP/1.1\r\nhost: x\r\ncontent-length: ${Math.max(body.length, 5)}\r\n\r\n${body}`);
      await once(client, 'data');
    }
    expect(taken).toEqual(['first', 'second', undefined]);
    expect(isComplete).toEqual([true, true, false]);
  } finally {
    client.destroy();
    server.close();
  }
});
