import { join } from 'node:path';
import type { ProcessSpec } from './cluster-process.ts';

const config = join(import.meta.dirname, '..', 'deploy', 'proxy', 'Caddyfile');

/** `file` is Caddy's executable; `home` receives its data. */
export function proxySpec(
  file: string,
  home: string,
  port: number,
  apiPorts: readonly number[],
  webPort: number,
): ProcessSpec {
  return {
    name: 'proxy',
    file,
    args: ['run', '--adapter', 'caddyfile', '--config', config],
    env: {
      HOME: home,
      PROXY_BIND: '127.0.0.1',
      PROXY_ADDRESS: `http://:${port}`,
      PROXY_API_UPSTREAMS: apiPorts.map((each) => `127.0.0.1:${each}`).join(' '),
      PROXY_WEB_UPSTREAM: `127.0.0.1:${webPort}`,
    },
    isReady: async () => (await isOk(`http://127.0.0.1:${port}/healthz`)) && isOk(`http://127.0.0.1:${port}/`),
  };
}

/** Whether `GET url` gets a 2xx response within 10 s. Throws if there is no response. */
export async function isOk(url: string): Promise<boolean> {
  return (await fetch(url, { signal: AbortSignal.timeout(10_000) })).ok;
}
