import { joined } from '../../platform/bytes/buffers.ts';
import { type ByteSource, bytesOf, cutOut } from '../../platform/bytes/byte-source.ts';
import { timeSliceBytes } from '../../platform/slices/slices.ts';
import type { NewCheckpoint } from './checkpoint-repository.ts';
import { assertDeploymentVersion, type DeploymentScan, DeploymentScanner } from './deployment-scanner.ts';
import { compress, sha256Of } from './document-codec.ts';
import { DocumentCut, type DocumentShape, documentParts, ScatteredDocumentError } from './document-cut.ts';
import type { DocumentStore } from './document-store.ts';

/** Called once the whole body is scanned. May throw to prevent the storing of its document. */
export type Check = (scan: DeploymentScan) => void | Promise<void>;

/** Null if the body is not in memory, is too large to be saved at once, or is larger than `maxBytes`. */
export function smallBody(body: Buffer | null | undefined, maxBytes: number): Buffer | null {
  return body && body.length <= Math.min(timeSliceBytes, maxBytes) ? body : null;
}

/**
 * The body is read once: scanned, cut out, hashed, compressed and stored as it passes; a buffer (`smallBody`) is processed at once. Errors
 * in the body are known at its end, before the object becomes visible. Throws JsonSyntaxError, InvalidDeploymentError, and the errors of
 * `check` and `source`.
 */
export async function saveDocument(
  documents: DocumentStore,
  source: ByteSource | Buffer,
  shape: DocumentShape,
  check: Check = () => {},
): Promise<NewCheckpoint> {
  const isSmall = Buffer.isBuffer(source);
  try {
    return await (isSmall
      ? saveAtOnce(documents, source, shape, check)
      : saveInOnePass(documents, source, shape, check));
  } catch (error) {
    if (!(error instanceof ScatteredDocumentError)) throw error;
    return saveInTwoPasses(documents, isSmall ? bytesOf(source) : source, shape, check);
  }
}

/** Does not make the document the state of a stack. Throws JsonSyntaxError, InvalidDeploymentError and the errors of `source`. */
export function storeDeployment(documents: DocumentStore, source: ByteSource): Promise<NewCheckpoint> {
  return saveDocument(documents, source, 'root');
}

/** For a small body, the steps of a stream would cost as much as the work itself. */
async function saveAtOnce(
  documents: DocumentStore,
  body: Buffer,
  shape: DocumentShape,
  check: Check,
): Promise<NewCheckpoint> {
  const cut = new DocumentCut(shape);
  const parts = cut.push(body);
  const text = joined(parts);
  const scan = cut.end();
  await check(scan);
  const encoded = { sha256: sha256Of(text), sizeBytes: text.length, bytes: await compress(text) };
  return { document: await documents.saveEncoded(encoded), resourceCount: scan.resourceCount };
}

async function saveInOnePass(
  documents: DocumentStore,
  source: ByteSource,
  shape: DocumentShape,
  check: Check,
): Promise<NewCheckpoint> {
  const cut = new DocumentCut(shape);
  let resourceCount = 0;
  const text = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of source()) yield* cut.push(chunk);
  };
  const document = await documents.save(text, async () => {
    const scan = cut.end();
    await check(scan);
    resourceCount = scan.resourceCount;
  });
  return { document, resourceCount };
}

/** The document is known only at the end of the body. */
async function saveInTwoPasses(
  documents: DocumentStore,
  source: ByteSource,
  shape: DocumentShape,
  check: Check,
): Promise<NewCheckpoint> {
  const scanner = new DeploymentScanner({ nested: shape === 'untypedDeployment' ? shape : null });
  for await (const chunk of source()) scanner.write(chunk);
  const scan = scanner.end();
  assertDeploymentVersion(scan.document.get('version')?.text);
  await check(scan);
  const document = await documents.save(cutOut(source, documentParts(scan, shape)));
  return { document, resourceCount: scan.resourceCount };
}
