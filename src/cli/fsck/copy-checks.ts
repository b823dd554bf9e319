import { randomBytes } from 'node:crypto';
import { createEventSegmentRepository } from '../../shared/events/event-segment-repository.ts';
import { parseIndex } from '../../shared/events/segment-index.ts';
import { createCopyQueueRepository } from '../../shared/platform/blobs/second/copy-queue-repository.ts';
import { settleCopy } from '../../shared/platform/blobs/second/mirrored-blob-store.ts';
import { createPolicyArchiveRepository } from '../../shared/policies/policy-archive-repository.ts';
import type { DocumentPlace, DocumentStore } from '../../shared/state/checkpoints/document-store.ts';
import type { ReadDocument } from '../../shared/state/checkpoints/second-copies.ts';
import type { FsckRun } from './fsck-run.ts';
import { createBlobOwnerRepository } from './tables/blob-owner-repository.ts';

const rowsPerPage = 1_000;

/** Compares the two stores: which objects each has, and the bytes of some of them, or of all. */
export async function checkCopies(run: FsckRun): Promise<void> {
  const { context, fixes, report, sample } = run;
  const { blobRows, copies, db, mirror } = context;
  if (mirror === null || copies === null) {
    const { blobs } = await createCopyQueueRepository(db).readLag();
    if (blobs > 0) report.add('copy-idle', `${blobs} objects`);
    return;
  }
  let different: string[] = [];
  const compare = async (key: string): Promise<void> => {
    run.step('objects in both stores');
    if (!(await copies.isSame(key))) different.push(key);
  };
  // A sample begins at a random key: their names are random.
  let left = sample ?? Number.POSITIVE_INFINITY;
  const start = sample === null ? '' : `checkpoints/${randomBytes(1).toString('hex')}`;
  for (const { from, until } of start === ''
    ? [{ from: '', until: null }]
    : [
        { from: start, until: null },
        { from: '', until: start },
      ])
    for (let after = from; ; ) {
      const rows = (await blobRows.listAfter(after, rowsPerPage)).filter(({ key }) => until === null || key <= until);
      const keys = rows.filter(({ isReferenced }) => isReferenced).map(({ key }) => key);
      const absentHere = new Set(await mirror.main.findAbsent(keys));
      const absentThere = new Set(await mirror.second.findAbsent(keys));
      for (const key of keys) {
        if (absentHere.has(key) !== absentThere.has(key)) {
          if (fixes) await settleCopy(mirror, { key, isDeletion: false });
          report.add('copy-missing', key, {
            detail: absentHere.has(key) ? 'main store' : 'second store',
            isFixed: fixes,
          });
        } else if (!absentHere.has(key) && left-- > 0) await run.item('object', key, () => compare(key));
      }
      after = rows.at(-1)?.key ?? '';
      if (rows.length < rowsPerPage) break;
    }
  // A chunk can be read once the chunks that it needs are mended.
  for (let isProgress = fixes; isProgress; ) {
    const left: string[] = [];
    for (const key of different)
      if (await mend(run, key)) report.add('copy-differs', key, { isFixed: true });
      else left.push(key);
    isProgress = left.length < different.length;
    different = left;
  }
  // Others were replaced or deleted meanwhile.
  for (const key of different) if (!(await copies.isSame(key))) report.add('copy-differs', key);
}

/** Replaces the object that does not have the hash in the database. Returns whether one was. */
async function mend({ context }: FsckRun, key: string): Promise<boolean> {
  const { copies, db } = context;
  const owner = await createBlobOwnerRepository(db).find(key);
  return owner !== null && (await copies?.mendOne(key, readerOf(context, owner))) === true;
}

function readerOf(
  { checkpoints, chunks, db, eventSegments }: FsckRun['context'],
  { id, kind }: { readonly kind: 'checkpoint' | 'chunk' | 'segment' | 'archive'; readonly id: string },
): ReadDocument {
  const read: Readonly<Record<typeof kind, ReadDocument>> = {
    chunk: async (documents) => {
      const chunk = (await chunks.readChain(Number(id))).at(-1);
      if (!chunk) throw new Error(`Chunk ${id} is gone`);
      await documents.readChunk({ ...chunk, depth: 0, cutKey: null });
    },
    segment: async (documents) => {
      const segment = await createEventSegmentRepository(db).find(id);
      if (!segment) throw new Error(`Segment ${id} is gone`);
      await eventSegments.verify(segment, parseIndex(segment.frames), segment.sha256, { documents });
    },
    checkpoint: async (documents) => drain(documents, await checkpoints.find(id)),
    archive: async (documents) => drain(documents, await createPolicyArchiveRepository(db).find(id)),
  };
  return read[kind];
}

async function drain(documents: DocumentStore, place: DocumentPlace | null): Promise<void> {
  if (place === null) throw new Error('The document is gone');
  for await (const _ of documents.open(place));
}
