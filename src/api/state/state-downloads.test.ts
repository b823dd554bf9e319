import { EventEmitter } from 'node:events';
import { expect, jest, test } from '@jest/globals';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { UnavailableError } from '../../shared/platform/errors/errors.ts';
import type { StateDocument } from '../../shared/state/state-reader.ts';
import { StateDownloads } from './state-downloads.ts';

const mib = 1024 * 1024;
const request = { method: 'GET', headers: {} } as unknown as FastifyRequest;

function open(downloads: StateDownloads) {
  let returned = 0;
  const bytes = { [Symbol.asyncIterator]: () => ({ next: async () => ({}), return: async () => ++returned }) };
  const start = (who: string, sizeBytes = 2 * mib) => {
    const raw = Object.assign(new EventEmitter(), { closed: false });
    const reply = { raw, type: () => {}, header: () => {}, send: () => reply } as unknown as FastifyReply;
    const state = { sizeBytes, storedBytes: sizeBytes, bytes, warning: null } as unknown as StateDocument;
    const sent = downloads.send(request, reply, { caller: { userId: who, tokenId: who }, state });
    return { raw, sent };
  };
  return { start, returned: () => returned };
}

const isPending = async (work: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([work.then(() => false), new Promise((resolve) => setImmediate(() => resolve(true)))])) === true;

test('slow readers of one caller leave connections to the blob store for others', async () => {
  const { start } = open(new StateDownloads());
  const slow = Array.from({ length: 32 }, () => start('slow'));
  await Promise.all(slow.map(({ sent }) => sent));
  const next = start('slow').sent;
  await start('slow', mib).sent;
  await start('other').sent;
  expect(await isPending(next)).toBe(true);
  slow[0]?.raw.emit('close');
  await next;
});

test('nor do the readers of many callers take all of them: others get an error after a while', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  try {
    const { returned, start } = open(new StateDownloads());
    await Promise.all(Array.from({ length: 96 }, (_, at) => start(`c${at}`).sent));
    const next = start('one more').sent;
    expect(await isPending(next)).toBe(true);
    const refused = expect(next).rejects.toThrow(UnavailableError);
    await jest.advanceTimersByTimeAsync(20_000);
    await refused;
    expect(returned()).toBe(1);
  } finally {
    jest.useRealTimers();
  }
});
