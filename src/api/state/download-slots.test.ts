import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { zstdCompressSync } from 'node:zlib';
import { expect, jest, test } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import { UnavailableError } from '../../shared/platform/errors/errors.ts';
import { type DocumentLocation, DocumentStore } from '../../shared/state/checkpoints/document-store.ts';
import { type StateDocument, StateReader } from '../../shared/state/state-reader.ts';
import { StateDownloads } from './download-slots.ts';

const mib = 1024 * 1024;
const large = 4 * mib;
const atOnce = 64;

/** `counts`: the open blobs. */
function stateOf(sizeBytes: number, isBlob = true) {
  const counts = { open: 0 };
  const text = randomBytes(sizeBytes);
  const stored = zstdCompressSync(text);
  const open = async () => {
    counts.open++;
    return (async function* () {
      try {
        for (let at = 0; at < stored.length; at += mib / 4) yield stored.subarray(at, at + mib / 4);
      } finally {
        counts.open--;
      }
    })();
  };
  const documents = new DocumentStore({ open } as unknown as BlobStore, {} as never, 0, {} as never);
  const sha256 = createHash('sha256').update(text).digest();
  const location = isBlob ? { blobKey: 'key', inlineBytes: null } : { blobKey: null, inlineBytes: stored };
  const checkpoint = { sizeBytes, sha256, codec: 'zstd', ...location };
  const parts = {
    documentReader: { open: (location: DocumentLocation) => documents.open(location) },
    updates: { findByVersion: async () => ({ checkpointId: 'c', compactionError: null, compactionWarning: null }) },
    checkpoints: { find: async () => checkpoint },
    replica: null,
  };
  const reader = new StateReader(parts as unknown as ConstructorParameters<typeof StateReader>[0]);
  return { counts, reader };
}

function start(downloads: StateDownloads, reader: StateReader, who: string, organization = who) {
  const raw = Object.assign(new EventEmitter(), { closed: false });
  const caller = { userId: who, tokenId: who };
  const admit = downloads.of({ caller, organization, reply: { raw } as unknown as FastifyReply });
  const opened = reader.readVersion('s', 1, organization, admit) as Promise<StateDocument>;
  return { raw, opened };
}

async function openMany(downloads: StateDownloads, reader: StateReader, who: (at: number) => [string, string?]) {
  const started = Array.from({ length: atOnce }, (_, at) => start(downloads, reader, ...who(at)).opened);
  return Promise.all(started);
}

test('a download that waits for its turn has opened no blob', async () => {
  const downloads = new StateDownloads({} as BlobStore);
  const { counts, reader } = stateOf(large);
  const [first] = await openMany(downloads, reader, () => ['slow']);
  const next = start(downloads, reader, 'slow').opened;
  await start(downloads, reader, 'other').opened;
  expect(counts.open).toBe(atOnce + 1);
  // As Fastify does with the response of a client that has left.
  Readable.from(first?.bytes ?? []).destroy();
  for await (const _ of (await next).bytes);
  await start(downloads, reader, 'slow').opened;
  expect(counts.open).toBe(atOnce + 1);
});

test('many tokens of one organization leave connections to the blob store for others', async () => {
  const downloads = new StateDownloads({} as BlobStore);
  const { counts, reader } = stateOf(large);
  await openMany(downloads, reader, (at) => [`token${at}`, 'org']);
  const { opened, raw } = start(downloads, reader, 'one more', 'org');
  await start(downloads, reader, 'other').opened;
  expect(counts.open).toBe(atOnce + 1);
  // A client that leaves waits no longer.
  raw.emit('close');
  await expect(opened).rejects.toThrow('The client has disconnected');
});

test('states in rows and small ones do not wait', async () => {
  const downloads = new StateDownloads({} as BlobStore);
  await openMany(downloads, stateOf(large).reader, () => ['slow']);
  await start(downloads, stateOf(large, false).reader, 'slow').opened;
  await start(downloads, stateOf(mib).reader, 'slow').opened;
});

test('large outputs wait until clients have earlier ones', async () => {
  const downloads = new StateDownloads({} as BlobStore);
  const send = (who: string, bytes = mib) => {
    const raw = Object.assign(new EventEmitter(), { closed: false });
    const reply = { raw } as unknown as FastifyReply;
    const call = { caller: { userId: who, tokenId: who }, organization: 'org', reply };
    return { raw, admitted: downloads.admitOutputs(call, bytes).then(() => who) };
  };
  const slow = Array.from({ length: 8 }, (_, at) => send(`slow${at}`));
  await Promise.all(slow.map(({ admitted }) => admitted));
  const next = send('next').admitted;
  expect(await Promise.race([next, send('small', 1_000).admitted])).toBe('small');
  // Few wait: they are in memory, too.
  const waiting = Array.from({ length: 15 }, () => send('matrix'));
  await expect(send('matrix').admitted).rejects.toThrow(UnavailableError);
  slow[0]?.raw.emit('finish');
  slow[0]?.raw.emit('close');
  expect(await next).toBe('next');
  for (const { raw } of waiting) raw.emit('close');
  await Promise.all(waiting.map(({ admitted }) => expect(admitted).rejects.toThrow('The client has disconnected')));
});

test('a download that waits too long fails', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
  try {
    const downloads = new StateDownloads({} as BlobStore);
    const { reader } = stateOf(large);
    await openMany(downloads, reader, () => ['slow']);
    const refused = expect(start(downloads, reader, 'slow').opened).rejects.toThrow(UnavailableError);
    await jest.advanceTimersByTimeAsync(20_000);
    await refused;
  } finally {
    jest.useRealTimers();
  }
});
