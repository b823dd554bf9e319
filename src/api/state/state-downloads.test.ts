import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
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

test('slow readers of one caller leave connections to the blob store for others', async () => {
  const { start, returned } = open(new StateDownloads());
  const slow = Array.from({ length: 32 }, () => start('slow'));
  await Promise.all(slow.map(({ sent }) => sent));
  await expect(start('slow').sent).rejects.toThrow(UnavailableError);
  expect(returned()).toBe(1);
  await start('slow', mib).sent;
  await start('other').sent;
  slow[0]?.raw.emit('close');
  await start('slow').sent;
});

test('nor do the readers of many callers take all of them', async () => {
  const { start } = open(new StateDownloads());
  const all = Array.from({ length: 96 }, (_, at) => start(`c${at}`).sent);
  await Promise.all(all);
  await expect(start('one more').sent).rejects.toThrow(UnavailableError);
});
