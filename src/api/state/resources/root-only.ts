import { JsonScanner } from '../../../shared/platform/json/json-scanner.ts';
import { ScanWindow } from '../../../shared/platform/json/scan-window.ts';
import { denseSliceBytes, inSlices } from '../../../shared/platform/slices/slices.ts';

/** The type of the resource that represents the stack itself. Every program registers one. */
export const rootType = 'pulumi:pulumi:Stack';

/** Enough for the root type, even if all its characters are escaped and surrounded by spaces. */
const maxTypeBytes = 256;

/**
 * Whether there is only the root resource: no other one, and no pending operation, which might have created one. Does not buffer the
 * document. Throws JsonSyntaxError.
 */
export async function isRootOnly(document: AsyncIterable<Buffer>): Promise<boolean> {
  const texts = new ScanWindow(maxTypeBytes);
  let type: string | null = null;
  let elements = 0;
  // If a member is repeated, the last one wins.
  let hasOnlyRoot = false;
  // The CLI's checkpoint deltas have the second name.
  const hasOperations: Record<string, boolean> = { pending_operations: false, pendingOperations: false };
  const scanner = new JsonScanner({
    reportDepth: 4,
    onValue: (path, _kind, start, end) => {
      const [root, list] = path;
      if (path.length === 4 && root === 'deployment' && list === 'resources' && path[3] === 'type')
        type = textOf(texts.textOf(start, end));
      else if (path.length === 3) elements += 1;
      else if (path.length === 2) {
        if (root === 'deployment' && list === 'resources') hasOnlyRoot = elements === 1 && type === rootType;
        if (root === 'deployment' && String(list) in hasOperations) hasOperations[String(list)] = elements > 0;
        elements = 0;
      }
      texts.pass(end);
    },
  });
  for await (const chunk of inSlices(document, denseSliceBytes)) {
    texts.beginChunk(chunk);
    scanner.write(chunk);
    texts.endChunk();
  }
  scanner.end();
  return hasOnlyRoot && !Object.values(hasOperations).includes(true);
}

function textOf(json: Buffer | null): string | null {
  const value: unknown = json && JSON.parse(json.toString('utf8'));
  return typeof value === 'string' ? value : null;
}
