import { createServer, type ServerResponse } from 'node:http';
import type { AppContext } from '../shared/context.ts';

const healthLimitMs = 2_000;

/** Health, readiness and metrics of a worker process, on `config.workerListen`. Returns its base URL. */
export async function startHealthServer(context: AppContext): Promise<string> {
  const { blobs, config, db, handover, lifecycle, metrics } = context;
  let draining = false;
  const checks: Record<string, () => Promise<void>> = {
    database: () => db.ping(healthLimitMs),
    redis: () => handover.check(healthLimitMs),
    blobs: () => blobs.check(healthLimitMs),
  };
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    if (path === '/healthz') void answer(response, { database: checks['database'] as () => Promise<void> }, false);
    else if (path === '/readyz') void answer(response, checks, draining);
    else if (path === '/metrics')
      void metrics.registry.metrics().then((text) => send(response, 200, metrics.registry.contentType, text));
    else send(response, 404, 'application/json', JSON.stringify({ code: 404, message: 'There is nothing here' }));
  });
  lifecycle.onClose('intake', 'readiness', async () => {
    draining = true;
  });
  lifecycle.onClose('queues', 'health server', async () => {
    server.closeAllConnections();
    server.close();
  });
  const { host, port } = config.workerListen;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return `http://${host === '0.0.0.0' ? 'localhost' : host}:${typeof address === 'object' && address ? address.port : port}`;
}

async function answer(
  response: ServerResponse,
  checks: Record<string, () => Promise<void>>,
  draining: boolean,
): Promise<void> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const well = await check().then(
        () => true,
        () => false,
      );
      return [name, well ? 'ok' : 'unreachable'] as const;
    }),
  );
  const ready = !draining && results.every(([, result]) => result === 'ok');
  const body = { status: draining ? 'draining' : ready ? 'ready' : 'not ready', ...Object.fromEntries(results) };
  send(response, ready ? 200 : 503, 'application/json', JSON.stringify(body));
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}
