import { get as getOverHttp } from 'node:http';
import { get as getOverTls } from 'node:https';
import type { Config } from '../shared/platform/config/config.ts';

const limitMs = 3_000;

/**
 * Checks the health of the server with this configuration. Returns 0 if it is healthy, otherwise 1 with the reason on
 * stderr. Uses the management listener if there is one, because clients cannot block it.
 */
export async function checkHealth({ front, listen, managementListen }: Config): Promise<number> {
  const address = managementListen ?? listen;
  const host = address.host === '0.0.0.0' ? '127.0.0.1' : address.host === '::' ? '::1' : address.host;
  const isTls = managementListen === null && front.tls !== null;
  const url = `${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${address.port}/healthz`;
  try {
    const { status, body } = await get(url, isTls);
    if (status === 200) return 0;
    console.error(`unhealthy: ${status} ${body}`);
  } catch (error) {
    console.error(`unhealthy: no response from ${url}: ${(error as Error).message}`);
  }
  return 1;
}

function get(url: string, isTls: boolean): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
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
    request.on('error', reject);
  });
}
