import type { ByteSource } from '../platform/bytes/byte-source.ts';
import type { NewCheckpoint } from './checkpoints/checkpoint-repository.ts';
import type { DocumentStore } from './checkpoints/document-store.ts';
import { saveDocument } from './checkpoints/save-document.ts';

/**
 * Validates a deployment document `{version, features?, deployment}` and stores its bytes, without making it the state of a stack.
 * Throws JsonSyntaxError, InvalidDeploymentError and the errors of `source`.
 */
export function storeDeployment(documents: DocumentStore, source: ByteSource): Promise<NewCheckpoint> {
  return saveDocument(documents, source, 'root');
}
