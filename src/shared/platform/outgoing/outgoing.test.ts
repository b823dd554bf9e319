import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { parseAllowList } from './address-rules.ts';
import { Outgoing, type OutgoingError } from './outgoing.ts';

/** Answers of a server that follows no rules. */
const answers: Readonly<Record<string, (socket: Socket) => void>> = {
  'that switches protocols': (socket) => socket.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  'without end of interim responses': (socket) => writeForever(socket, 'HTTP/1.1 103 X\r\nLink: x\r\n\r\n'),
  'without end of 100 Continue': (socket) => writeForever(socket, 'HTTP/1.1 100 X\r\n\r\n'),
  'without end of headers': (socket) => {
    socket.write('HTTP/1.1 200 X\r\n');
    writeForever(socket, 'X: y\r\n');
  },
  'without end of trailers': (socket) => {
    socket.write('HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n');
    writeForever(socket, 'X: y\r\n');
  },
  'with a body that is too long': (socket) => {
    socket.write('HTTP/1.1 200 X\r\n\r\n');
    writeForever(socket, 'x');
  },
  'that breaks off': (socket) => socket.end('HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nabc'),
  'that is none': (socket) => socket.write('garbage\r\n\r\n'),
  'that never comes': () => {},
};

async function call(answer: (socket: Socket) => void, timeoutMs: number): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const parsed = parseAllowList(url);
  if ('wrong' in parsed) throw new Error(parsed.wrong);
  try {
    const { body, status } = await new Outgoing({ allow: parsed.list }).call(url, { timeoutMs, maxBytes: 1_000 });
    return `${status} ${body}`;
  } catch (error) {
    return (error as OutgoingError).reason;
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

test.each(Object.keys(answers))('a call fails with an answer %s', async (name) => {
  const reason = name === 'that never comes' ? 'too-slow' : name.includes('too long') ? 'too-large' : 'failed';
  const timeoutMs = reason === 'too-slow' ? 100 : 60_000;
  expect(await call(answers[name] as (socket: Socket) => void, timeoutMs)).toBe(reason);
});

test('an answer after interim ones counts', async () => {
  const interim = 'HTTP/1.1 103 X\r\nLink: x\r\n\r\n'.repeat(3);
  expect(await call((socket) => socket.end(`${interim}HTTP/1.1 200 X\r\n\r\nabc`), 60_000)).toBe('200 abc');
});

function writeForever(socket: Socket, text: string): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(text.repeat(1_000)));
  };
  socket.on('drain', more);
  more();
}
