import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the kernel's ephemeral ports: an outgoing connection could take the port of a server that restarts. */
const [lowest, highest] = [12_000, 32_000];

/** Returns loopback ports for servers that must restart at the same address. */
export async function findFixedPorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  for (let attempt = 0; found.size < count; attempt++) {
    if (attempt > count * 50) throw new Error(`there are not ${count} free ports between ${lowest} and ${highest}`);
    const port = randomInt(lowest, highest);
    if (!found.has(port) && (await isFree(port))) found.add(port);
  }
  return [...found];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
