import type { Config } from './shared/platform/config/config.ts';

const limitMs = 3_000;

/** Asks the server of this configuration for its health: 0 when it is well, else 1 with the reason on stderr. */
export async function checkHealth({ listen }: Config): Promise<number> {
  const host = listen.host === '0.0.0.0' ? '127.0.0.1' : listen.host === '::' ? '::1' : listen.host;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${listen.port}/healthz`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(limitMs) });
    const body = await response.text();
    if (response.status === 200) return 0;
    console.error(`unhealthy: ${response.status} ${body}`);
  } catch (error) {
    console.error(
      `unhealthy: no answer from ${url}: ${((error as Error).cause as Error | undefined)?.message ?? (error as Error).message}`,
    );
  }
  return 1;
}
