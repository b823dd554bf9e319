import { once } from 'node:events';
import { createServer } from 'node:http';

/** The receiver of the demo's webhooks: it accepts all requests, except below `/gone`. Ends with the process. */
export async function startReceiver(port: number): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      const isGone = request.url?.startsWith('/gone') ?? false;
      response.writeHead(isGone ? 410 : 200, { 'content-type': 'text/plain' });
      response.end(isGone ? 'This channel was archived' : 'ok');
    });
  });
  server.unref();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${port}`;
}
