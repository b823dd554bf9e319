import { isDamage } from '../document-damage.ts';
import type { DocumentStore } from '../document-store.ts';
import { encodeChunk, hashInSlices } from './chunk-codec.ts';
import type { ChunkRepository, ChunkRow } from './chunk-repository.ts';

/**
 * Makes other versions that refer to the chunks readable again. `text` is the version's text from another source. A state rebuilt from its
 * journal has another time in its manifest, so its chunk with the manifest differs. Returns the number of replaced chunks.
 */
export async function repairChunks(
  parts: { documents: DocumentStore; chunks: ChunkRepository },
  broken: readonly ChunkRow[],
  text: AsyncIterable<Buffer>,
): Promise<number> {
  let repaired = 0;
  const texts = inSizes(text, broken);
  for (const chunk of broken) {
    const { value } = await texts.next();
    if (!value) break;
    if (!(await hashInSlices(value)).equals(chunk.sha256)) continue;
    if (await isReadable(parts.documents, chunk)) continue;
    const stored = (await parts.chunks.readChain(chunk.id)).at(-1);
    if (!stored) continue;
    const bytes = await encodeChunk(value, null);
    const location = await parts.documents.saveChunk(chunk.sha256, bytes, { wasEncrypted: stored.codec !== 'zstd' });
    if (await parts.chunks.replace(stored, location)) repaired++;
  }
  await texts.return(undefined);
  return repaired;
}

async function isReadable(documents: DocumentStore, chunk: ChunkRow): Promise<boolean> {
  try {
    await documents.readChunk(chunk);
    return true;
  } catch (error) {
    if (!isDamage(error)) throw error;
    return false;
  }
}

async function* inSizes(
  text: AsyncIterable<Buffer>,
  sizes: readonly { readonly sizeBytes: number }[],
): AsyncGenerator<Buffer, undefined> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let at = 0;
  for await (const chunk of text) {
    parts.push(chunk);
    bytes += chunk.length;
    for (let next = sizes[at]; next && bytes >= next.sizeBytes; next = sizes[at]) {
      const whole = Buffer.concat(parts, bytes);
      yield whole.subarray(0, next.sizeBytes);
      parts = [whole.subarray(next.sizeBytes)];
      bytes -= next.sizeBytes;
      at++;
    }
  }
}
