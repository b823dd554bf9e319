import type { NewCheckpoint } from '../checkpoints/checkpoint-repository.ts';
import { assertDeploymentVersion, DeploymentScanner } from '../deployments/deployment-scanner.ts';
import { type ByteSource, cutOut } from '../documents/byte-source.ts';
import type { DocumentStore } from '../documents/document-store.ts';

/**
 * Validates a deployment document `{version, features?, deployment}` and stores its bytes, without making it the state of a stack.
 * Throws JsonSyntaxError, InvalidDeploymentError and the errors of `source`.
 */
export async function storeDeployment(documents: DocumentStore, source: ByteSource): Promise<NewCheckpoint> {
  const scanner = new DeploymentScanner({ nested: null });
  for await (const chunk of source()) scanner.write(chunk);
  const scan = scanner.end();
  assertDeploymentVersion(scan.document.get('version')?.text);
  return { document: await documents.save(cutOut(source, [scan.root])), resourceCount: scan.resourceCount };
}
