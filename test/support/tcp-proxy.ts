import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  /** With the host and port of the proxy. */
  readonly url: string;
  /** Stops forwarding, but keeps connections open and accepts new ones: a host that hangs. */
  hang(): void;
  /** Resumes, and delivers the bytes that have waited. */
  resume(): void;
  /** Like `hang`, but permanent for open connections: what they send is lost, and the client never learns of an end. */
  vanish(): void;
  /** After `vanish`: the target has long forgotten the old connections, new ones go through. */
  reappear(): void;
  /** Breaks all open connections. */
  cut(): void;
  /** Rejects new connections until `accept`, and breaks the open ones. */
  refuse(): void;
  accept(): void;
  /** New connections lead to the host and port of this URL; open ones stay where they are. */
  redirect(target: string): void;
  connections(): number;
}

export async function openTcpProxy(target: string): Promise<TcpProxy> {
  let goal = new URL(target);
  const pairs = new Set<readonly [client: Socket, server: Socket]>();
  /** Clients that must not get any more data. */
  const forsaken = new Set<Socket>();
  let hanging = false;
  let refusing = false;
  const listener = createServer((client) => {
    if (refusing) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ host: goal.hostname.replace(/^\[|\]$/g, ''), port: Number(goal.port || 5432) });
    const pair = [client, server] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      from.on('error', () => {});
      from.on('data', (chunk: Buffer) => to.write(chunk));
      from.on('close', () => {
        pairs.delete(pair);
        if (from === client) forsaken.delete(client);
        if (!forsaken.has(to)) to.destroy();
      });
      if (hanging) from.pause();
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((listener.address() as AddressInfo).port);
  const cut = (): void => {
    for (const [client, server] of pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  };
  return {
    url: url.toString(),
    hang: () => {
      hanging = true;
      for (const pair of pairs) for (const socket of pair) socket.pause();
    },
    resume: () => {
      hanging = false;
      for (const pair of pairs) for (const socket of pair) socket.resume();
    },
    vanish: () => {
      hanging = true;
      for (const pair of pairs) for (const socket of pair) socket.pause();
    },
    reappear: () => {
      hanging = false;
      for (const [client, server] of [...pairs]) {
        forsaken.add(client);
        // Continue reading, or the client's own end would not be noticed.
        client
          .removeAllListeners('data')
          .on('data', () => {})
          .resume();
        server.resetAndDestroy();
      }
    },
    cut,
    refuse: () => {
      refusing = true;
      cut();
    },
    accept: () => {
      refusing = false;
    },
    redirect: (to) => {
      goal = new URL(to);
    },
    connections: () => pairs.size,
    [Symbol.asyncDispose]: async () => {
      cut();
      for (const client of forsaken) client.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
