import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { hasErrorCode } from './toolchain/error-code.ts';

/** Below the kernel's ephemeral ports: an outgoing connection could otherwise take the port of a restarting server. */
const [lowest, highest] = [12_000, 32_000];

/**
 * The address of the reservations: tests in other processes look for ports, too, while a server starts or is down. Linux has all of
 * 127.0.0.0/8; on other systems, a port is only known to have been free a moment ago.
 */
const reservationHost = '127.0.0.2';

/** Loopback ports for servers that may start later and restart at the same address. No other caller gets them before this process ends. */
export async function findFixedPorts(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let attempt = 0; found.length < count; attempt++) {
    if (attempt > count * 50) throw new Error(`there are not ${count} free ports between ${lowest} and ${highest}`);
    const port = randomInt(lowest, highest);
    if (await reserve(port)) found.push(port);
  }
  return found;
}

async function reserve(port: number): Promise<boolean> {
  const reservation = await listen(port, reservationHost);
  if (reservation === 'taken') return false;
  const trial = await listen(port, '127.0.0.1');
  if (trial === 'taken' || trial === 'impossible') {
    if (reservation !== 'impossible') reservation.close();
    return false;
  }
  trial.close();
  await once(trial, 'close');
  return true;
}

async function listen(port: number, host: string): Promise<Server | 'taken' | 'impossible'> {
  // The reservation does not keep the process running.
  const server = createServer((socket) => socket.destroy()).unref();
  try {
    server.listen({ port, host, exclusive: true });
    await once(server, 'listening');
    return server;
  } catch (error) {
    return hasErrorCode(error, 'EADDRNOTAVAIL') ? 'impossible' : 'taken';
  }
}
