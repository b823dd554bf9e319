import { get as getOverHttp } from 'node:http';
import { get as getOverTls } from 'node:https';
import type { Config } from '../shared/platform/config/config.ts';
import { onFailure } from '../shared/platform/outgoing/failed-request.ts';

/**
 * The URL of a path of the server with these settings, from this machine: at its management listener if there is one, because clients
 * cannot block that.
 */
export function ownUrl({ front, listen, managementListen }: Config, path: string): string {
  const address = managementListen ?? listen;
  const host = address.host === '0.0.0.0' ? '127.0.0.1' : address.host === '::' ? '::1' : address.host;
  const isTls = managementListen === null && front.tls !== null;
  return `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${address.port}${path}`;
}

/** Sends a GET request to a URL of `ownUrl`. */
export function getOwn(url: string, limitMs: number): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const isTls = url.startsWith('https:');
    // The certificate is for the public host name, not for this address. Nothing secret is sent.
    const options = {
      signal: AbortSignal.timeout(limitMs),
      agent: false,
      ...(isTls ? { rejectUnauthorized: false } : {}),
    };
    const request = (isTls ? getOverTls : getOverHttp)(url, options, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.on('error', reject);
    });
    onFailure(request, reject);
  });
}
