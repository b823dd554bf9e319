import type { Config } from '../shared/platform/config/config.ts';
import { getOwn, ownUrl } from './own-server.ts';

const limitMs = 3_000;

/** Returns 0 if the server is healthy, otherwise 1 with the reason on stderr. */
export async function checkHealth(config: Config): Promise<number> {
  const url = ownUrl(config, '/healthz');
  try {
    const { status, body } = await getOwn(url, limitMs);
    if (status === 200) return 0;
    console.error(`unhealthy: ${status} ${body}`);
  } catch (error) {
    console.error(`unhealthy: no response from ${url}: ${(error as Error).message}`);
  }
  return 1;
}
