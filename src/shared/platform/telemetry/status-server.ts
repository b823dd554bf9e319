import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { OperatorError } from '../errors/errors.ts';
import { securityHeaders } from '../http/security-headers.ts';

/** Enough for probes and scrapes. With the time limit, clients cannot block them for long. */
const maxConnections = 64;
const limitMs = 10_000;

export interface ProcessHealth {
  healthz(): Promise<HealthResponse>;
  readyz(): Promise<HealthResponse>;
}

/** `body.status` is one word; the other members describe the parts. */
export interface HealthResponse {
  readonly status: number;
  readonly body: { readonly status: string } & Readonly<Record<string, unknown>>;
}

export class ListenError extends OperatorError {
  override readonly name = 'ListenError';

  constructor(setting: string, { host, port }: { host: string; port: number }, cause: unknown) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const reasons: Readonly<Record<string, string>> = {
      EADDRINUSE: 'is in use by another process',
      EADDRNOTAVAIL: 'is not an address of this machine',
      EACCES: 'may not be used by this user',
    };
    super(`${setting}: ${host}:${port} ${reasons[code ?? ''] ?? `cannot be listened on: ${message}`}`, { cause });
  }
}

/** Serves plain HTTP without authentication. `setting` names the address in errors. */
export async function startStatusServer(
  address: { readonly host: string; readonly port: number },
  { health, registry, setting }: { health: ProcessHealth; registry: Registry; setting: string },
): Promise<{ readonly url: string; close(): void }> {
  const server = createServer({ headersTimeout: limitMs, requestTimeout: limitMs }, (request, response) => {
    const path = request.url?.split('?')[0];
    const result =
      path === '/healthz'
        ? json(response, health.healthz())
        : path === '/readyz'
          ? json(response, health.readyz())
          : path === '/metrics'
            ? registry.metrics().then((text) => send(response, 200, registry.contentType, text))
            : json(response, Promise.resolve({ status: 404, body: { code: 404, message: 'Not found' } }));
    result.catch(() => response.destroy());
  });
  server.maxConnections = maxConnections;
  const { host, port } = address;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new ListenError(setting, address, error)));
    server.listen(port, host, resolve);
  });
  const shown = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${shown}:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function json(response: ServerResponse, result: Promise<{ status: number; body: object }>): Promise<void> {
  const { status, body } = await result;
  send(response, status, 'application/json', JSON.stringify(body));
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { ...securityHeaders, 'content-type': type }).end(body);
}
