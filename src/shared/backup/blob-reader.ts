import { createEventSegmentRepository } from '../events/event-segment-repository.ts';
import type { EventSegments } from '../events/event-segments.ts';
import { parseIndex } from '../events/segment-index.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { createPolicyArchiveRepository } from '../policies/policy-archive-repository.ts';
import type { CheckpointRepository } from '../state/checkpoints/checkpoint-repository.ts';
import type { ChunkRepository } from '../state/checkpoints/chunks/chunk-repository.ts';
import type { ReadDocument } from '../state/checkpoints/document-copies.ts';
import type { DocumentLocation, DocumentStore } from '../state/checkpoints/document-store.ts';
import { createJournalSnapshotRepository } from '../state/journal/journal-snapshot-repository.ts';
import { createBlobOwnerRepository } from './blob-owner-repository.ts';

export interface BlobReaderParts {
  readonly db: Queryable;
  readonly checkpoints: CheckpointRepository;
  readonly chunks: ChunkRepository;
  readonly eventSegments: EventSegments;
}

/** The result compares a blob with its hash in the database. Null if nothing there consists of the blob. */
export async function findBlobReader(parts: BlobReaderParts, key: string): Promise<ReadDocument | null> {
  const { checkpoints, chunks, db, eventSegments } = parts;
  const owner = await createBlobOwnerRepository(db).find(key);
  if (owner === null) return null;
  const { id, kind } = owner;
  if (kind === 'chunk') {
    const chunk = await chunks.findStored(key);
    return chunk && ((documents) => documents.readChunk(chunk));
  }
  if (kind === 'segment') {
    const segment = await createEventSegmentRepository(db).find(id);
    if (segment?.blobKey !== key) return null;
    return (documents) => eventSegments.verify(segment, parseIndex(segment.frames), segment.sha256, { documents });
  }
  const find: Readonly<Record<typeof kind, () => Promise<DocumentLocation | null>>> = {
    checkpoint: () => checkpoints.find(id),
    archive: () => createPolicyArchiveRepository(db).find(id),
    snapshot: () => createJournalSnapshotRepository(db).find(id),
  };
  const location = await find[kind]();
  // The object may have other bytes by now.
  return location?.blobKey === key ? (documents) => drain(documents, location) : null;
}

async function drain(documents: DocumentStore, location: DocumentLocation): Promise<void> {
  for await (const _ of documents.open(location));
}
